#include "stages/stages.hpp"

#include <fmt/format.h>

#include "stages/base/error.hpp"
#include "stages/ddp/ddp.hpp"
#include "stages/zero1/zero1.hpp"
#include "stages/zero2/zero2.hpp"
#include "stages/zero3/zero3.hpp"

namespace zerolab {

std::unique_ptr<Stage> make_stage(int number, Runtime& runtime) {
  switch (number) {
    case 0:
      return std::make_unique<Ddp>(runtime);
    case 1:
      return std::make_unique<Zero1>(runtime);
    case 2:
      return std::make_unique<Zero2>(runtime);
    case 3:
      return std::make_unique<Zero3>(runtime);
    default:
      throw Error(Code::config_value, fmt::format("there is no stage {}", number),
                  "choose 0 (data parallel), 1 (optimizer states), 2 (+ gradients) or 3 (+ "
                  "parameters)");
  }
}

std::unique_ptr<Stage> make_stage(Runtime& runtime) {
  return make_stage(runtime.settings.zero.stage, runtime);
}

}  // namespace zerolab
