// stages/zero3/README.md walks through one step by a real log: is it still what happens?

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "lab/run.hpp"
#include "stages/base/read_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/documents.hpp"
#include "tests/support/observed.hpp"

namespace zerolab::test {
namespace {

using Lines = std::vector<std::string>;

std::string without_extra_spaces(const std::string& line) {
  std::istringstream words(line);
  std::string result;
  for (std::string word; words >> word;) result += (result.empty() ? "" : " ") + word;
  return result;
}

/// The lines of the walk: those that begin with a phase.
Lines lines_of_the_walk(const std::string& page) {
  Lines lines;
  std::istringstream in(page.substr(page.find("## One step")));
  for (std::string line; std::getline(in, line);) {
    const std::string text = without_extra_spaces(line);
    for (const char* phase : {"forward ", "backward ", "publish "}) {
      if (line.rfind("    ", 0) == 0 && text.rfind(phase, 0) == 0) lines.push_back(text);
    }
  }
  return lines;
}

TEST_CASE("the walk through a step in stage 3's README is what happens", "[zero3][docs]") {
  const std::string page = document("../stages/zero3/README.md");
  const std::size_t json = page.find("```json") + 7;
  const ModelDescription model =
      parse_model(page.substr(json, page.find("```", json) - json), "README.md");
  Plan plan;
  plan.options.steps = 2;
  plan.options.settings = {{"zero_optimization.stage", 3, "--stage"},
                           {"train_micro_batch_size_per_gpu", 1, "--micro-batch"},
                           {"zero_optimization.stage3_prefetch_bucket_size", 9000, "flag"}};
  plan.ranks = 2;
  plan.model = model;
  Text text;
  text.bytes.assign(4000, 'a');
  plan.data = std::make_shared<ByteData>(std::move(text), 1);
  Training training = training_for(plan, settings_for(plan, std::nullopt), 0);
  training.validation = {};

  const Lines happened =
      observed<Lines>(2, training, [](Lines& lines, const Stamp& stamp, const Event& event) {
        if (stamp.step != 2) return;
        const std::string_view phase = name_of(stamp.phase);
        if (const auto* param = std::get_if<ParamEvent>(&event)) {
          lines.push_back(fmt::format("{} {} {} -> {} {}{}{}", phase, param->parameter, param->from,
                                      param->to, param->cause, param->module.empty() ? "" : " by ",
                                      param->module));
        } else if (const auto* comm = std::get_if<CommEvent>(&event)) {
          if (comm->op == name_of(Op::control)) return;
          lines.push_back(
              fmt::format("{} {} {} elements {}", phase, comm->op, comm->elements, comm->owner));
        }
      })[0];
  CHECK(lines_of_the_walk(page) == happened);
}

}  // namespace
}  // namespace zerolab::test
