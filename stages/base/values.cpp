#include "stages/base/values.hpp"

#include <fmt/format.h>

#include "stages/base/error.hpp"

namespace zerolab {

void expect_fp32(Dtype dtype) {
  if (dtype == Dtype::fp32) return;
  throw Error(Code::usage,
              fmt::format("values are {}, and the code that reads or writes them has floats",
                          name_of(dtype)),
              "leave it to the functions of the Device, which take all types, or train in fp32");
}

}  // namespace zerolab
