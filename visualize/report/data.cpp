#include "visualize/report/data.hpp"

#include <cmath>

#include "visualize/diagram/render.hpp"
#include "visualize/diagram/states.hpp"
#include "visualize/report/advice.hpp"

namespace zerolab::report {
namespace {

using Json = nlohmann::ordered_json;

// A page stays small: so many entries of steps in full, and so many steps in figures of each run.
constexpr std::size_t kEntries = 120'000;
constexpr std::size_t kSteps = 1'000;

template <typename Enum>
Json words() {
  Json list = Json::array();
  for (const std::string_view word : log::kWords<Enum>) list.push_back(word);
  return list;
}

template <typename Enum>
int number_of(Enum value) {
  return static_cast<int>(value);
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::int64_t rounded(double t) { return std::llround(t); }

/// A list with a value of every entry: shorter than a list of objects.
template <typename Entries, typename Value>
Json column(const Entries& entries, Value value) {
  Json list = Json::array();
  for (const auto& entry : entries) list.push_back(value(entry));
  return list;
}

Json usage_json(const log::Usage& usage) {
  Json list = Json::array();
  for (const Count bytes : usage) list.push_back(bytes);
  return list;
}

Json view_json(const StepView& view) {
  const auto since = [&](double t) { return rounded(t - view.begin); };
  return {{"begin", view.begin},
          {"length", since(view.end)},
          {"ended", view.ended},
          {"left_out", view.left_out},
          {"live", usage_json(view.live)},
          {"states", column(view.states, [](log::Status s) { return number_of(s); })},
          {"phases", column(view.phases,
                            [&](const PhaseBegin& each) {
                              return Json{since(each.t), number_of(each.phase), each.micro_step};
                            })},
          {"memory",
           {{"t", column(view.memory, [&](const MemoryChange& each) { return since(each.t); })},
            {"category", column(view.memory,
                                [](const MemoryChange& each) { return number_of(each.category); })},
            {"bytes",
             column(view.memory, [](const MemoryChange& each) { return rounded(each.bytes); })},
            {"owner", column(view.memory, [](const MemoryChange& each) { return each.owner; })}}},
          {"transfers", column(view.transfers,
                               [&](const Transfer& each) {
                                 return Json{
                                     number_of(each.op), each.elements,       each.bytes_sent,
                                     since(each.issued), since(each.started), since(each.finished),
                                     since(each.waited), since(each.told),    each.owner};
                               })},
          {"spans", column(view.spans,
                           [&](const Span& each) {
                             return Json{each.module, number_of(each.kind), since(each.start),
                                         since(each.end), each.depth};
                           })},
          {"transitions", column(view.transitions, [&](const Transition& each) {
             return Json{since(each.t),      each.parameter,        number_of(each.from),
                         number_of(each.to), number_of(each.cause), each.module};
           })}};
}

/// The views of each step, by rank.
Json views_json(const RunData& run) {
  std::set<Count> steps;
  for (const RankRecording& rank : run.ranks) {
    for (const StepView& view : rank.views) steps.insert(view.step);
  }
  Json list = Json::array();
  for (const Count step : steps) {
    Json ranks = Json::array();
    for (const RankRecording& rank : run.ranks) {
      const auto found = std::find_if(rank.views.begin(), rank.views.end(),
                                      [step](const StepView& view) { return view.step == step; });
      ranks.push_back(found == rank.views.end() ? Json(nullptr) : view_json(*found));
    }
    list.push_back({{"step", step}, {"ranks", ranks}});
  }
  return list;
}

/// Every step in figures, or every so-manieth. Loss and norm are those of summary.json.
Json steps_json(const RunData& run) {
  const std::vector<StepFigures>& logged = run.ranks.front().steps;
  const bool ended = run.folder.summary.has_value();
  const std::size_t count = ended ? run.folder.summary->steps.size() : logged.size();
  const std::size_t stride = count / kSteps + 1;
  Json list = Json::array();
  for (std::size_t i = 0; i < count; i += stride) {
    Json step;
    if (ended) {
      const log::Summary::Step& of = run.folder.summary->steps[i];
      step = {{"step", run.summary.steps[i].step},
              {"loss", or_null(of.loss)},
              {"grad_norm", or_null(of.grad_norm)},
              {"skipped", of.skipped},
              {"lr", or_null(run.summary.steps[i].lr)},
              {"scale", or_null(run.summary.steps[i].scale)},
              {"seconds", or_null(run.summary.steps[i].seconds)}};
    } else {
      const log::StepEvent& of = logged[i].result;
      step = {{"step", logged[i].step},
              {"loss", or_null(of.loss)},
              {"grad_norm", or_null(of.grad_norm)},
              {"skipped", of.skipped},
              {"lr", of.lr},
              {"scale", or_null(of.scale)},
              {"seconds", logged[i].duration / 1e6}};
    }
    list.push_back(step);
  }
  return {{"every", stride}, {"list", list}};
}

/// What each rank needed: bytes, and microseconds of a typical step.
Json ranks_json(const RunData& run) {
  Json list = Json::array();
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const RankRecording& recording = run.ranks[rank];
    const auto peak = peak_of(run, rank);
    const bool steady = run.folder.summary || (recording.in_full && !recording.steps.empty());
    Json typical = nullptr;
    if (recording.in_full && !recording.steps.empty()) {
      std::vector<StepFigures> steps(recording.steps);
      const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
      std::nth_element(steps.begin(), middle, steps.end(),
                       [](const auto& a, const auto& b) { return a.duration < b.duration; });
      typical = {{"step", middle->step},
                 {"duration", middle->duration},
                 {"gather_wait", middle->gather_wait},
                 {"reduce_wait", middle->reduce_wait},
                 {"other_wait", middle->other_wait}};
    }
    list.push_back(
        {{"there", recording.there},
         {"events", recording.events},
         {"peak", peak ? usage_json(*peak) : Json(nullptr)},
         {"steady", steady ? usage_json(run.folder.summary ? run.folder.summary->memory[rank].steady
                                                           : recording.steady)
                           : Json(nullptr)},
         {"typical", typical}});
  }
  return list;
}

Json theory_json(const RunData& run) {
  const Theory& theory = run.theory;
  Json states = nullptr;
  if (theory.states) {
    states = {
        {"parameters", theory.states->parameters}, {"gradients", theory.states->gradients},
        {"optimizer", theory.states->optimizer},   {"whole", theory.states->whole},
        {"formula", theory.states->formula},       {"per_parameter", theory.states->per_parameter}};
  }
  Json sent = Json::object();
  for (const Theory::Row& row : theory.sent) sent[std::string(name_of(row.op))] = row.bytes;
  return {{"states", states},
          {"sent", sent},
          {"sent_formula", theory.formula},
          {"exact", theory.exact}};
}

Json traffic_json(const log::TrafficByOp& traffic) {
  Json json = Json::object();
  for (const auto& [op, counted] : traffic) {
    json[std::string(name_of(op))] = {{"calls", counted.calls},
                                      {"elements", counted.elements},
                                      {"bytes_sent", counted.bytes_sent}};
  }
  return json;
}

Json holders_json(const std::vector<log::Holder>& holders) {
  return column(holders, [](const log::Holder& each) {
    return Json{{"owner", shortened(each.owner)},
                {"category", shortened(each.category)},
                {"where", shortened(each.where)},
                {"bytes", each.bytes},
                {"live", or_null(each.live)}};
  });
}

Json failure_json(const RunData& run) {
  if (!run.folder.failure) return nullptr;
  Json json{{"code", shortened(run.folder.failure->code)},
            {"rank", or_null(run.folder.failure->rank)},
            {"message", shortened(run.folder.failure->message, 4'000)},
            {"way_out", shortened(run.failure.way_out, 2'000)},
            {"out_of_memory", nullptr}};
  if (const auto& memory = run.failure.out_of_memory) {
    json["out_of_memory"] = {{"pool", shortened(memory->pool)},
                             {"requested", memory->requested},
                             {"budget", memory->budget},
                             {"live", memory->live},
                             {"short_by", memory->short_by},
                             {"owner", shortened(memory->owner)},
                             {"category", shortened(memory->category)},
                             {"where", shortened(memory->where)},
                             {"holders", holders_json(memory->holders)},
                             {"last", holders_json(memory->last)}};
  }
  return json;
}

Json about_json(const RunData& run) {
  const log::RunDetails& details = run.details;
  return {{"command", shortened(details.command, 1'000)},
          {"started", shortened(details.started)},
          {"version", shortened(details.version)},
          {"transport", shortened(details.transport)},
          {"device", shortened(details.device)},
          {"model", shortened(details.model)},
          {"data", shortened(details.data)},
          {"dtype", shortened(run.summary.dtype)},
          {"link", details.bandwidth || details.latency
                       ? Json{{"bandwidth", or_null(details.bandwidth)},
                              {"latency", or_null(details.latency)}}
                       : Json(nullptr)},
          {"planned_steps", or_null(details.steps)},
          {"resumed_at", or_null(details.resumed_at)},
          {"resumed_from", shortened(details.resumed_from)},
          {"settings", column(details.settings, [](const log::Setting& each) {
             return Json{{"key", shortened(each.key)},
                         {"value", shortened(each.value)},
                         {"origin", shortened(each.origin)},
                         {"active", each.active}};
           })}};
}

/// Tokens of all ranks in a step, as far as run.json says what they depend on.
Json tokens_json(const RunData& run) {
  const auto batch = run.details.count_setting("train_batch_size");
  const auto length = run.details.sequence_length;
  return batch && length ? Json(*batch * *length) : Json(nullptr);
}

Json remarks_json(const RunData& run) {
  constexpr std::array kKinds{"failure", "warning", "hint", "missing"};
  return column(remarks_on(run), [&](const Remark& each) {
    return Json{{"kind", kKinds[static_cast<std::size_t>(each.kind)]},
                {"text", shortened(each.text, 2'000)}};
  });
}

/// The states of parameters and the moves between them, as a picture; null where the log has none.
Json diagram_json(const RunData& run) {
  const auto in_full = [](const RankRecording& rank) { return rank.in_full; };
  if (std::none_of(run.ranks.begin(), run.ranks.end(), in_full)) return nullptr;
  try {
    const diagram::StatesOptions options{
        .parameters = true, .gradients = false, .spec = true, .times = true, .title = false};
    return diagram::render(diagram::states_dot(diagram::observe(run.folder), options), "svg");
  } catch (const log::Unreadable&) {
    return nullptr;  // memory and collectives, but no transitions
  }
}

Json run_json(const RunData& run, Names& names) {
  const log::Run& of = run.folder.run;
  const bool ended = run.folder.summary.has_value();
  Json json{{"folder", shortened(run.folder.path.string())},
            {"stage", of.stage},
            {"world_size", of.world_size},
            {"budget", or_null(of.device_memory)},
            {"ended", ended},
            {"about", about_json(run)},
            {"remarks", remarks_json(run)},
            {"failure", failure_json(run)},
            {"parameters",
             column(of.parameters,
                    [&](const log::Parameter& each) {
                      return Json{names[each.name], each.numel, each.trainable, each.persistent};
                    })},
            {"tokens_per_step", tokens_json(run)},
            {"steps", steps_json(run)},
            {"ranks", ranks_json(run)},
            {"theory", theory_json(run)},
            {"validation", column(run.summary.validation,
                                  [](const auto& each) {
                                    return Json{each.first, or_null(each.second)};
                                  })},
            {"comm", ended ? traffic_json(run.folder.summary->comm) : Json(nullptr)},
            {"comm_seconds", or_null(run.summary.comm_seconds)},
            {"exposed_comm_seconds", or_null(run.summary.exposed_comm_seconds)},
            {"overlap_fraction", or_null(run.summary.overlap_fraction)},
            {"tokens_per_second", or_null(run.summary.tokens_per_second)},
            {"prefetch", run.summary.prefetch_hits
                             ? Json{{"hits", or_null(run.summary.prefetch_hits)},
                                    {"misses", or_null(run.summary.prefetch_misses)},
                                    {"unused", or_null(run.summary.prefetch_unused)}}
                             : Json(nullptr)},
            {"diagram", diagram_json(run)},
            {"shown_step", run.shown_step},
            {"views", views_json(run)}};
  const auto shares = shares_of(run);
  json["shares"] = shares ? Json{{"gather_wait", shares->gather_wait},
                                 {"reduce_wait", shares->reduce_wait},
                                 {"other_wait", shares->other_wait},
                                 {"transfer", shares->transfer}}
                          : Json(nullptr);
  return json;
}

}  // namespace

Json page_data(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::filesystem::path> runs;
  Json comparisons = Json::array();
  for (const std::filesystem::path& folder : folders) {
    for (std::filesystem::path& run : log::runs_in(folder)) runs.push_back(std::move(run));
    if (const auto comparison = log::read_comparison(folder)) {
      comparisons.push_back({{"folder", shortened(folder.string())},
                             {"bitwise_equal", comparison->bitwise_equal},
                             {"max_ulp", comparison->max_ulp}});
    }
  }
  Names names;
  Json list = Json::array();
  for (const std::filesystem::path& run : runs) {
    list.push_back(run_json(read_run(run, kEntries / runs.size(), names), names));
  }
  return {{"words",
           {{"categories", words<log::Category>()},
            {"ops", words<log::Op>()},
            {"statuses", words<log::Status>()},
            {"causes", words<log::Cause>()},
            {"kinds", words<log::VisitKind>()},
            {"phases", words<log::Phase>()}}},
          {"comparisons", comparisons},
          {"runs", list},
          {"names", names.shown()}};
}

}  // namespace zerolab::report
