#include "lab/failures/clinic.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>

#include "lab/failures/evidence.hpp"
#include "lab/failures/findings.hpp"
#include "lab/run_folder.hpp"
#include "stages/base/error.hpp"
#include "stages/base/read_file.hpp"
#include "stages/base/types.hpp"
#include "stages/checkpoint/checkpoint.hpp"

namespace zerolab {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

constexpr int kSeconds = 180;  // that a run may take before it counts as hanging

std::string quoted(const std::string& word) {
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789_-+=.,:/@%") == std::string::npos;
  if (plain && !word.empty()) return word;
  return "'" + std::regex_replace(word, std::regex("'"), "'\\''") + "'";
}

// What a run has left, as documents; those that are not there are left out.
Json documents_of(const RunResult& result, const fs::path& folder) {
  Json known{{"exit", result.status}, {"code", result.code()}};
  const auto read = [](Json& into, const fs::path& from) {
    for (const char* name : {"run", "summary", "error", "compare"}) {
      const auto text = read_file(from / fmt::format("{}.json", name));
      if (text) into[name] = Json::parse(*text, nullptr, false);
    }
    into["events"] = count_events(from);
    Index peak = 0;
    for (const Json& rank : into.value(Pointer("/summary/memory"), Json::array())) {
      peak = std::max(peak, rank.at(Pointer("/device/peak/total")).get<Index>());
    }
    into["peak"] = peak;
  };
  read(known, folder);
  for (int stage = 0; stage <= 3; ++stage) {
    const std::string name = fmt::format("stage{}", stage);
    if (fs::exists(folder / name)) read(known[name], folder / name);
  }
  return known;
}

/// The line of a run with what its braces stand for: {these names} the paths, others expressions.
std::string line_of(const ClinicRun& run, const std::map<std::string, fs::path>& paths,
                    const Findings& findings) {
  std::string line, rest = run.line;
  for (std::smatch found; std::regex_search(rest, found, std::regex("\\{(config|folder)\\}"));) {
    line += findings.filled_in(found.prefix()) + quoted(paths.at(found[1]).string());
    rest = found.suffix();
  }
  return line + findings.filled_in(rest);
}

/// Takes away what an earlier examination has left in the folder that runs share: checkpoints and
/// files of weights. Throws Error (Code::output_folder) rather than touch anything else.
void empty_shared_folder(const fs::path& folder) {
  const auto ours = [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name == kLatest || path.extension() == ".safetensors" || fs::exists(path / kManifest);
  };
  if (!fs::exists(folder)) return;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory() || ours(entry.path()) || ours(entry.path().parent_path())) continue;
    throw Error(Code::output_folder,
                fmt::format("{} is of no checkpoint, and {} would be emptied",
                            entry.path().string(), folder.string()),
                "name another folder with --out");
  }
  fs::remove_all(folder);
}

/// Where a run's files go: its folder, its configuration beside it, and what it shares with others.
class Bench {
 public:
  Bench(fs::path program, fs::path folder, int ranks)
      : program_(std::move(program)), folder_(std::move(folder)), ranks_(ranks) {
    empty_shared_folder(shared());
    fs::create_directories(shared());
  }

  /// Runs it, and adds what it left to the findings under its name.
  RunResult run(const ClinicRun& run, const std::string& name, Findings& findings) const {
    const fs::path folder = folder_ / name;
    prepare_run_folder(folder);
    const fs::path config = folder_ / (name + "_config.json");
    if (!run.config.empty()) std::ofstream(config) << run.config;
    RunResult result;
    result.line = line_of(run, {{"config", config}, {"folder", shared()}}, findings);
    if (result.line.find(" -n ") == std::string::npos) result.line += fmt::format(" -n {}", ranks_);
    result.line += " --out " + quoted(folder.string());
    const fs::path out = folder_ / (name + ".out");
    const fs::path err = folder_ / (name + ".err");
    const std::string shell = fmt::format("timeout -k 5 {} {} {} --plain >{} 2>{} </dev/null",
                                          kSeconds, quoted(program_.string()), result.line,
                                          quoted(out.string()), quoted(err.string()));
    const auto start = std::chrono::steady_clock::now();
    const int status = std::system(shell.c_str());
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result.line = "zerolab " + result.line;
    result.out = read_file(out).value_or("");
    result.err = read_file(err).value_or("");
    findings.add(name, documents_of(result, folder));
    return result;
  }

  fs::path folder_of(const std::string& name) const { return folder_ / name; }

 private:
  fs::path shared() const { return folder_ / "shared"; }

  fs::path program_, folder_;
  int ranks_;
};

void judge(const ClinicRun& expected, const RunResult& result, const std::string& name,
           std::vector<Verdict>& verdicts) {
  verdicts.push_back({fmt::format("the {} run ends with status {}", name, expected.exit_status),
                      result.status == expected.exit_status,
                      fmt::format("status {}", result.status)});
  if (!expected.code.empty()) {
    verdicts.push_back({fmt::format("the {} run ends with {}", name, expected.code),
                        result.code() == expected.code, result.code()});
  }
  for (const std::string& part : expected.says) {
    const bool said = (result.out + result.err).find(part) != std::string::npos;
    verdicts.push_back({fmt::format("the {} run says: {}", name, part), said, "it does not"});
  }
}

/// "{advice.train_micro_batch_size_per_gpu}" in the line of a run; empty if it takes no advice.
std::string advice_in(const ClinicRun& run) {
  const std::size_t begin = run.line.find("{advice.");
  if (begin == std::string::npos) return "";
  return run.line.substr(begin, run.line.find('}', begin) + 1 - begin);
}

/// Where a run went out of memory: whose allocation that was, and when.
Json point_of(const Json& known, const std::string& name) {
  const Json details = known.at(name).value(Pointer("/error/details"), Json::object());
  return {details.value("owner", ""), details.value("where", "")};
}

/// An out-of-memory report speaks of the allocation that failed. The run that heeds it comes past
/// that one, and may end at a later one, which has advice of its own.
RunResult fixed_run(const Failure& failure, const Bench& bench, Findings& findings,
                    Examination& result) {
  const std::string advice = advice_in(failure.fixed);
  findings.add("advised", findings.known().at("broken"));
  while (true) {
    if (!advice.empty()) result.advised.push_back(findings.filled_in(advice));
    RunResult fixed = bench.run(failure.fixed, "fixed", findings);
    if (advice.empty()) return fixed;
    const bool passes =
        point_of(findings.known(), "fixed") != point_of(findings.known(), "advised");
    if (!passes || fixed.code() != code_name(Code::out_of_memory)) {
      result.verdicts.push_back({"what each report advises passes the allocation that failed",
                                 passes, "one ends there again"});
      return fixed;
    }
    findings.add("advised", findings.known().at("fixed"));
  }
}

}  // namespace

std::string RunResult::code() const {
  std::smatch found;
  const std::regex code("zerolab: (rank [0-9]+: )?(ZL[0-9]+)");
  return std::regex_search(err, found, code) ? found[2].str() : "";
}

bool Examination::as_documented() const {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const Verdict& each) { return each.holds; });
}

Examination examine(const Failure& failure, int ranks, const fs::path& program,
                    const fs::path& folder) {
  Examination result;
  result.failure = failure;
  result.ranks = std::max(ranks, failure.least_ranks);
  const Bench bench(program, folder / failure.id, result.ranks);
  Findings findings(result.ranks);
  const auto run = [&](const ClinicRun& expected, const std::string& name) {
    RunResult ran = bench.run(expected, name, findings);
    judge(expected, ran, name, result.verdicts);
    return ran;
  };
  try {
    if (failure.measured) result.measured = run(*failure.measured, "measured");
    result.broken = run(failure.broken, "broken");
    result.fixed = fixed_run(failure, bench, findings, result);
    judge(failure.fixed, result.fixed, "fixed", result.verdicts);
    // What a run that did not end as it should has left is no ground for more.
    if (!result.as_documented()) return result;
    for (const std::string& check : failure.checks) {
      const bool holds = findings.value_of(check) != 0;
      result.verdicts.push_back({check, holds, findings.values_in(check)});
    }
  } catch (const Error& error) {
    if (error.code() != Code::clinic_page) throw;
    result.verdicts.push_back({"the page can be followed", false, error.what_happened()});
  }
  for (const Evidence& evidence : failure.evidence) {
    const fs::path run_folder = bench.folder_of(evidence.of_the_fixed ? "fixed" : "broken");
    const std::vector<std::string> lines = evidence_in(run_folder, evidence);
    if (lines.empty()) result.verdicts.push_back({"the log shows the cause", false, "it does not"});
    std::copy(lines.begin(), lines.end(), std::back_inserter(result.evidence));
  }
  return result;
}

nlohmann::ordered_json to_json(const Failure& failure) {
  return {{"id", failure.id},
          {"stage", failure.stage},
          {"kind", failure.kind},
          {"title", failure.title},
          {"symptom", first_sentence(failure.symptom)},
          {"cause", first_sentence(failure.cause)},
          {"fix", first_sentence(failure.fix)},
          {"silent", failure.silent()},
          {"loud", !failure.silent()},
          {"exit_status", failure.broken.exit_status},
          {"code", failure.broken.code.empty() ? nlohmann::ordered_json(nullptr)
                                               : nlohmann::ordered_json(failure.broken.code)}};
}

nlohmann::ordered_json to_json(const Examination& examination) {
  const auto run = [](const RunResult& result) {
    return nlohmann::ordered_json{{"command", result.line}, {"exit_status", result.status},
                                  {"code", result.code()},  {"stdout", result.out},
                                  {"stderr", result.err},   {"seconds", result.seconds}};
  };
  nlohmann::ordered_json json = to_json(examination.failure);
  json["ranks"] = examination.ranks;
  json["as_documented"] = examination.as_documented();
  json["broken"] = run(examination.broken);
  json["fixed"] = run(examination.fixed);
  json["advised"] = examination.advised;
  json["evidence"] = examination.evidence;
  json["verdicts"] = nlohmann::ordered_json::array();
  for (const Verdict& each : examination.verdicts) {
    json["verdicts"].push_back({{"what", each.what}, {"holds", each.holds}, {"found", each.but}});
  }
  return json;
}

}  // namespace zerolab
