#include "tests/cli/log_schema.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "stages/base/dtype.hpp"
#include "stages/comm/communicator.hpp"
#include "stages/config/resolve.hpp"
#include "stages/memory/ledger.hpp"
#include "stages/model/module.hpp"
#include "stages/model/parameter.hpp"
#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"

using namespace zerolab;
using namespace zerolab::test;
using nlohmann::json;

namespace {

/// Everything a run folder may hold, by the definition that it must match.
class Checker {
 public:
  /// Checks every file and line below `folder`; returns how many documents there were of each kind.
  std::map<std::string, int> check(const std::filesystem::path& folder) {
    std::map<std::string, int> seen;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_directory()) continue;
      const std::filesystem::path& file = entry.path();
      INFO(file);
      if (file.extension() == ".jsonl") {
        for (const json& line : read_json_lines(file)) check("event", line, seen);
      } else {
        check(file.stem().string(), read_json(file), seen);
      }
    }
    return seen;
  }

 private:
  void check(const std::string& kind, const json& document, std::map<std::string, int>& seen) {
    ++seen[kind];
    const std::string why = definitions_.at(kind).mismatch(document);
    if (!why.empty()) FAIL_CHECK(why);
  }

  std::map<std::string, LogDefinition> definitions_ = [] {
    std::map<std::string, LogDefinition> all;
    for (const char* kind : {"run", "event", "summary", "compare", "error"}) {
      all.try_emplace(kind, kind);
    }
    return all;
  }();
};

/// The names of all enumerators: they count from 0, and name_of knows no more of them.
template <typename Enum>
std::set<std::string> names() {
  std::set<std::string> result;
  for (int i = 0; name_of(static_cast<Enum>(i)) != "?"; ++i) {
    result.emplace(name_of(static_cast<Enum>(i)));
  }
  return result;
}

std::set<std::string> strings(const json& list) { return list.get<std::set<std::string>>(); }

std::set<std::string> fields(const json& object) {
  std::set<std::string> result;
  for (const auto& [name, value] : object.items()) result.insert(name);
  return result;
}

/// A document with one mistake, and what the mistake is.
struct Spoilt {
  json document;
  std::string how;
};

/// Every document that comes of one mistake: at any depth a field too many, a field too few, an
/// object where a value belongs. Of a list only the first element is spoilt.
void spoil(const json& whole, const json::json_pointer& at, std::vector<Spoilt>& out) {
  const json& here = whole.at(at);
  const auto plant = [&](const std::string& how, auto&& change) {
    Spoilt spoilt{whole, fmt::format("{} at '{}'", how, at.to_string())};
    change(spoilt.document.at(at));
    out.push_back(std::move(spoilt));
  };
  if (here.is_object()) {
    plant("a field too many", [](json& node) { node["one_too_many"] = 1; });
    // A collective that was never called has no entry, nor a category that holds nothing.
    const bool optional =
        !at.empty() && (at.back() == "comm" || at.back() == "validation_comm" ||
                        at.back() == "generation_comm" || at.back() == "by_category");
    for (const auto& [name, value] : here.items()) {
      if (!optional) plant("without " + name, [&field = name](json& node) { node.erase(field); });
      spoil(whole, at / name, out);
    }
  } else if (here.is_array()) {
    plant("no list", [](json& node) { node = "none"; });
    if (!here.empty()) spoil(whole, at / std::size_t{0}, out);
  } else {
    plant("an object", [](json& node) { node = json::object(); });
  }
}

void check_refused(const LogDefinition& definition, const json& document) {
  REQUIRE(definition.mismatch(document) == "");
  std::vector<Spoilt> all;
  spoil(document, json::json_pointer(), all);
  for (const Spoilt& spoilt : all) {
    INFO(spoilt.how);
    CHECK(definition.mismatch(spoilt.document) != "");
  }
}

/// The first event of each kind.
std::map<std::string, json> one_of_each(const std::filesystem::path& file) {
  std::map<std::string, json> result;
  for (const json& event : read_json_lines(file)) {
    result.try_emplace(event.at("ev").get<std::string>(), event);
  }
  return result;
}

}  // namespace

TEST_CASE("every file and line of a run is as docs/log.schema.json says, in every stage") {
  Checker checker;
  for (const int stage : {0, 1, 2, 3}) {
    const Scratch scratch;
    const Outcome outcome =
        run_zerolab(fmt::format("train -n 3 --stage {} --model gpt-nano --micro-batch 1 --steps 2 "
                                "--gradient-accumulation-steps 2 --device-memory 1GiB --generate 2 "
                                "--prompt \xC3\xA9 --out {}",
                                stage, scratch.arg("run")));
    INFO(outcome.all());
    REQUIRE(outcome.status == 0);
    const auto seen = checker.check(scratch.path("run"));
    CHECK(fields(json(seen)) == std::set<std::string>{"event", "run", "summary"});
    CHECK(seen.at("event") > 1000);
  }
  const Scratch scratch;
  scratch.write("ds.json", R"({"wall_clock_breakdown": true, "optimizer": {"type": "SGD"}})");
  const Outcome outcome = run_zerolab(
      fmt::format("compare -n 2 --model mlp-small --micro-batch 2 --steps 2 --config {} --out {}",
                  scratch.arg("ds.json"), scratch.arg("run")));
  INFO(outcome.all());
  REQUIRE(outcome.status == 0);
  const auto seen = checker.check(scratch.path("run"));
  CHECK(seen.at("compare") == 1);
  CHECK(seen.at("run") == 4);
  CHECK(seen.at("summary") == 4);
}

TEST_CASE(
    "runs that save, and go on, and begin with given weights are as docs/log.schema.json says") {
  Checker checker;
  const Scratch scratch;
  scratch.write("ds.json", R"({"zero_optimization":
      {"stage3_gather_16bit_weights_on_model_save": true}})");
  const std::string common = fmt::format("-n 3 --stage 3 --config {} ", scratch.arg("ds.json"));
  const auto check = [&](const std::string& arguments) {
    const Outcome outcome =
        run_zerolab(fmt::format("{} {} --out {}", arguments, common, scratch.arg("run")));
    INFO(arguments << "\n" << outcome.all());
    REQUIRE(outcome.status == 0);
    const auto seen = checker.check(scratch.path("run"));
    CHECK(fields(json(seen)) == std::set<std::string>{"event", "run", "summary"});
    const json summary = read_json(scratch.path("run") / "summary.json");
    check_refused(LogDefinition("summary"), summary);
    check_refused(LogDefinition("run"), read_json(scratch.path("run") / "run.json"));
    check_refused(LogDefinition("event"),
                  one_of_each(scratch.path("run") / "rank2.events.jsonl").at("checkpoint"));
    return summary["checkpoints"];
  };
  const std::string weights = scratch.arg("weights.safetensors");
  const json saved = check("train --model mlp-small --steps 4 --save-every 2 --keep 1 --save " +
                           scratch.arg("ck") + " --save-model " + weights);
  REQUIRE(saved.size() == 3);
  CHECK(saved[0]["step"] == 2);
  CHECK(saved[1]["path"] == scratch.path("ck/global_step4").string());
  CHECK(saved[1]["bytes"] > 12 * 201'472);
  CHECK(saved[2]["path"] == scratch.path("weights.safetensors").string());
  CHECK(saved[2]["bytes"] == std::filesystem::file_size(scratch.path("weights.safetensors")));
  check("train --steps 5 --log-level steps --resume " + scratch.arg("ck"));
  CHECK(read_json(scratch.path("run") / "run.json")["resumed"] ==
        json{{"checkpoint", scratch.path("ck/global_step4").string()},
             {"step", 4},
             {"stage", 3},
             {"world_size", 3}});
  CHECK(check("import " + weights + " --steps 1") == json::array());
}

TEST_CASE("what a failed run leaves is as docs/log.schema.json says") {
  Checker checker;
  for (const std::string failure :
       {"--break unregistered-head", "--device-memory 600KiB", "--learning-rate 1e30"}) {
    const Scratch scratch;
    const Outcome outcome = run_zerolab(
        fmt::format("train -n 2 --stage 3 --model gpt-nano --micro-batch 1 --steps 5 {} --out {}",
                    failure, scratch.arg("run")));
    INFO(outcome.all());
    CHECK(outcome.status > 2);
    const auto seen = checker.check(scratch.path("run"));
    CHECK(fields(json(seen)) == std::set<std::string>{"error", "event", "run"});
  }
}

TEST_CASE("the names in docs/log.schema.json are those of the code") {
  const json known = log_schema().at("definitions");
  const auto listed = [&](const char* definition) {
    return strings(known.at(definition).at("enum"));
  };
  CHECK(listed("status") == names<Status>());
  CHECK(listed("cause") == names<Cause>());
  CHECK(listed("gradient_status") == names<GradientStatus>());
  CHECK(listed("phase") == names<Phase>());
  CHECK(listed("category") == names<Category>());
  CHECK(listed("op") == names<Op>());
  CHECK(listed("dtype") == names<Dtype>());
  CHECK(listed("visit") == names<VisitKind>());
  CHECK(listed("origin") == names<Origin>());
  CHECK(fields(known.at("traffic").at("properties")) == names<Op>());
  CHECK(fields(known.at("usage_by_category").at("properties")) == names<Category>());
  auto with_total = names<Category>();
  with_total.insert("total");
  CHECK(fields(known.at("usage").at("properties")) == with_total);
}

TEST_CASE(
    "docs/log.schema.json refuses a field too many, one too few, and a value of another kind") {
  const Scratch scratch;
  const std::string common = "-n 2 --model gpt-nano --micro-batch 1 --steps 1 ";
  REQUIRE(run_zerolab("compare --stages 0,3 " + common + "--out " + scratch.arg("run")).status ==
          0);
  REQUIRE(run_zerolab("train --stage 3 --break unregistered-head " + common + "--out " +
                      scratch.arg("failed"))
              .status == 4);
  REQUIRE(run_zerolab("train --stage 3 --generate 2 " + common + "--out " + scratch.arg("text"))
              .status == 0);
  const std::filesystem::path run = scratch.path("run");
  for (const char* file : {"run", "summary"}) {
    check_refused(LogDefinition(file),
                  read_json(scratch.path("text") / fmt::format("{}.json", file)));
  }
  check_refused(LogDefinition("compare"), read_json(run / "compare.json"));
  check_refused(LogDefinition("run"), read_json(run / "stage3" / "run.json"));
  check_refused(LogDefinition("summary"), read_json(run / "stage3" / "summary.json"));
  check_refused(LogDefinition("error"), read_json(scratch.path("failed") / "error.json"));
  REQUIRE(run_zerolab("train --stage 3 --device-memory 1MiB " + common + "--out " +
                      scratch.arg("tight"))
              .status == 3);
  const json tight = read_json(scratch.path("tight") / "error.json");
  CHECK(LogDefinition("error").mismatch(tight) == "");
  check_refused(LogDefinition("shortage"), tight["details"]);
  check_refused(LogDefinition("holding"), tight["details"]["holders"][0]);

  auto events = one_of_each(run / "stage3" / "rank1.events.jsonl");
  CHECK(fields(json(events)) ==
        std::set<std::string>{"alloc", "comm", "free", "grad", "param", "span", "step"});
  events["note"] = events.at("step");
  for (const char* field : {"loss", "grad_norm", "lr", "flushed", "scale", "skipped", "hash"}) {
    events["note"].erase(field);
  }
  events["note"].update({{"ev", "note"}, {"text", "said by a test"}});
  const LogDefinition event("event");
  for (const auto& [kind, document] : events) {
    INFO(kind);
    check_refused(event, document);
  }
}

TEST_CASE("docs/log.schema.json refuses names that there are not, and numbers that cannot be") {
  const Scratch scratch;
  REQUIRE(run_zerolab("train -n 2 --stage 3 --model gpt-nano --micro-batch 1 --steps 1 --out " +
                      scratch.arg("run"))
              .status == 0);
  const LogDefinition event("event");
  const auto events = one_of_each(scratch.path("run") / "rank0.events.jsonl");
  const auto check = [&](const char* kind, const char* field, const json& wrong) {
    json document = events.at(kind);
    REQUIRE(document.contains(field));
    document[field] = wrong;
    INFO(document.dump());
    CHECK(event.mismatch(document) != "");
  };
  check("param", "ev", "parm");
  check("param", "phase", "foreward");
  check("param", "from", "GATHERED");
  check("param", "cause", "whim");
  check("param", "parameter", "");
  check("param", "seq", -1);
  check("grad", "to", "READY");
  check("alloc", "category", "gradient");
  check("alloc", "pool", "attic");
  check("alloc", "bytes", 0.5);
  check("comm", "op", "all_to_all");
  check("comm", "dtype", "fp64");
  check("span", "kind", "sideways");
  check("step", "hash", "c15f48d5085bfc4");
  check("step", "hash", "C15F48D5085BFC43");
  check("step", "loss", "nan");

  const LogDefinition run("run");
  json document = read_json(scratch.path("run") / "run.json");
  REQUIRE(run.mismatch(document) == "");
  document["stage"] = 4;
  CHECK(run.mismatch(document) != "");
  document["stage"] = 3;
  document["settings"][0]["origin"] = "rumour";
  CHECK(run.mismatch(document) != "");
}
