#include "visualize/log/run_details.hpp"

#include <algorithm>
#include <charconv>

#include "visualize/log/json_file.hpp"

namespace zerolab::log {
namespace fs = std::filesystem;
namespace {

bool known(const Fields& json, const char* name) { return json.has(name) && !json.is_null(name); }

std::string text_of(const Fields& json, const char* name) {
  return known(json, name) ? json.text(name) : "";
}

std::optional<double> number_of(const Fields& json, const char* name) {
  return known(json, name) ? std::optional(json.number(name)) : std::nullopt;
}

std::optional<Count> count_of(const Fields& json, const char* name) {
  return known(json, name) ? std::optional(json.count(name)) : std::nullopt;
}

std::vector<Fields> objects_of(const Fields& json, const char* name) {
  return known(json, name) ? json.objects(name) : std::vector<Fields>{};
}

RunDetails details_of(const Fields& json) {
  RunDetails run{};
  run.command = text_of(json, "command");
  run.started = text_of(json, "started");
  run.version = text_of(json, "zerolab");
  run.transport = text_of(json, "transport");
  run.device = text_of(json, "device");
  run.deliberate_mistake = text_of(json, "deliberate_mistake");
  run.steps = count_of(json, "steps");
  if (known(json, "link")) {
    const Fields link = json.object("link");
    run.bandwidth = number_of(link, "bandwidth");
    run.latency = number_of(link, "latency");
  }
  if (known(json, "resumed")) {
    const Fields resumed = json.object("resumed");
    run.resumed_at = count_of(resumed, "step");
    run.resumed_from = text_of(resumed, "checkpoint");
  }
  if (known(json, "model")) {
    run.model = text_of(json.object("model"), "name");
    run.sequence_length = count_of(json.object("model"), "sequence_length");
  }
  if (known(json, "data")) run.data = text_of(json.object("data"), "origin");
  for (const Fields& each : objects_of(json, "settings")) {
    run.settings.push_back(
        {each.name("key"), each.text("value"), each.text("origin"), each.flag("active")});
  }
  if (known(json, "warnings")) run.warnings = json.names("warnings");
  return run;
}

SummaryDetails summary_of(const Fields& json) {
  SummaryDetails summary{};
  summary.dtype = text_of(json, "dtype");
  for (const Fields& step : objects_of(json, "steps")) {
    summary.steps.push_back({count_of(step, "step").value_or(summary.steps.size() + 1),
                             number_of(step, "lr"), number_of(step, "scale"),
                             number_of(step, "seconds")});
  }
  for (const Fields& each : objects_of(json, "validation")) {
    summary.validation.emplace_back(each.count("step"), each.number_or_null("loss"));
  }
  summary.comm_seconds = number_of(json, "comm_seconds");
  summary.exposed_comm_seconds = number_of(json, "exposed_comm_seconds");
  summary.overlap_fraction = number_of(json, "overlap_fraction");
  summary.tokens_per_second = number_of(json, "tokens_per_second");
  if (known(json, "prefetch")) {
    const Fields prefetch = json.object("prefetch");
    summary.prefetch_hits = count_of(prefetch, "hits");
    summary.prefetch_misses = count_of(prefetch, "misses");
    summary.prefetch_unused = count_of(prefetch, "unused");
  }
  return summary;
}

std::vector<Holder> holders_of(const Fields& json, const char* name) {
  std::vector<Holder> result;
  for (const Fields& each : objects_of(json, name)) {
    result.push_back({each.text("owner"), each.text("category"), text_of(each, "where"),
                      each.number("bytes"), count_of(each, "live")});
  }
  return result;
}

FailureDetails failure_of(const Fields& json) {
  FailureDetails failure{.way_out = text_of(json, "way_out"), .out_of_memory = std::nullopt};
  if (!known(json, "details")) return failure;
  const Fields details = json.object("details");
  if (!details.has("requested")) return failure;  // of another kind of error
  failure.out_of_memory = {.requested = details.count("requested"),
                           .budget = details.count("budget"),
                           .live = details.count("live"),
                           .short_by = details.count("short_by"),
                           .pool = details.text("pool"),
                           .owner = details.text("owner"),
                           .category = details.text("category"),
                           .where = details.text("where"),
                           .holders = holders_of(details, "holders"),
                           .last = holders_of(details, "last")};
  return failure;
}

// What `read` makes of a file, or nothing where it is not there.
template <typename Read>
auto if_there(const fs::path& file, Read read) -> decltype(read(std::declval<const Fields&>())) {
  if (!is_file(file)) return {};
  return read_json_file(file, read);
}

}  // namespace

std::optional<std::string> RunDetails::setting(std::string_view key) const {
  const auto found = std::find_if(settings.begin(), settings.end(), [key](const Setting& each) {
    return each.key == key && each.active;
  });
  return found == settings.end() ? std::nullopt : std::optional(found->value);
}

std::optional<Count> RunDetails::count_setting(std::string_view key) const {
  const std::optional<std::string> text = setting(key);
  Count value = 0;
  if (!text) return std::nullopt;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (failed != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

RunDetails read_run_details(const fs::path& folder) {
  return if_there(folder / "run.json", details_of);
}

SummaryDetails read_summary_details(const fs::path& folder) {
  return if_there(folder / "summary.json", summary_of);
}

FailureDetails read_failure_details(const fs::path& folder) {
  return if_there(folder / "error.json", failure_of);
}

std::optional<Comparison> read_comparison(const fs::path& folder) {
  return if_there(folder / "compare.json", [](const Fields& json) -> std::optional<Comparison> {
    return Comparison{json.flag("bitwise_equal"), json.number_or_null("max_ulp").value_or(0)};
  });
}

}  // namespace zerolab::log
