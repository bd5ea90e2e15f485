#include "tests/support/reported.hpp"

#include "lab/temporary_folder.hpp"
#include "tests/support/trainings.hpp"
#include "visualize/report/data.hpp"

namespace zerolab::test {

using Json = LoggedRun::Json;

LoggedRun reported_run(int stage) {
  Training training = training_of(tiny_transformer(), stage);
  training.steps = 2;
  training.settings.zero.prefetch_bucket_size = 500;
  LoggedRun run = logged_run(3, training);
  run.run["settings"] = settings_of_run(training);
  return run;
}

Json settings_of_run(const Training& training) {
  const auto setting = [](const std::string& key, const std::string& value) {
    return Json{{"key", key}, {"value", value}, {"origin", "flag"}, {"active", true}};
  };
  const Settings& settings = training.settings;
  return Json::array(
      {setting("optimizer.type", "AdamW"),
       setting("communication_data_type", settings.dtype == Dtype::fp32 ? "fp32" : "bf16"),
       setting("gradient_accumulation_steps", std::to_string(settings.gradient_accumulation_steps)),
       setting("zero_optimization.overlap_comm", settings.zero.overlap_comm ? "true" : "false"),
       setting("zero_optimization.stage3_prefetch_bucket_size",
               std::to_string(settings.zero.prefetch_bucket_size))});
}

Json page_data_of(const LoggedRun& run, const std::string& error_json) {
  const TemporaryFolder folder;
  run.write(folder.path());
  if (!error_json.empty()) folder.write("error.json", error_json);
  return report::page_data({folder.path()});
}

std::vector<std::string> remarks_of(const Json& page, const std::string& kind) {
  std::vector<std::string> texts;
  for (const Json& remark : page["runs"][0]["remarks"]) {
    if (remark["kind"] == kind) texts.push_back(remark["text"]);
  }
  return texts;
}

}  // namespace zerolab::test
