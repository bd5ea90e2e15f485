#include "visualize/diagram/observed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>

#include "visualize/log/event_lines.hpp"
#include "visualize/verify/reference.hpp"

namespace zerolab::diagram {
namespace {

using log::Cause;
using log::Count;
using log::GradientStatus;
using log::Status;

/// Follows the parameters of one rank after the other through a state machine.
template <typename State>
class Follower {
 public:
  /// Before anything has moved: all begin in the first state.
  explicit Follower(const std::vector<std::tuple<State, State, std::string>>& declared) {
    for (const auto& [from, to, cause] : declared) at(from, to, cause);
    for (auto& [key, transition] : transitions_) transition.legal = true;
  }

  void moved(const std::string& parameter, double t, State from, State to,
             const std::string& cause) {
    Place& place = places_[parameter];
    spend(place, t);
    if (place.state != from) ++at(place.state, from, kGap).count;
    Transition& made = at(from, to, cause);
    ++made.count;
    if (place.since && place.state == from) {
      ++made.timed;
      made.time += std::max(0.0, t - *place.since);
    }
    place = {to, t};
  }

  void end_rank(double t) {
    for (auto& [parameter, place] : places_) spend(place, t);
    places_.clear();
  }

  Machine machine() const {
    Machine result{.states = {}, .transitions = {}, .time = time_};
    for (const std::string_view word : log::kWords<State>) result.states.emplace_back(word);
    for (const auto& [key, transition] : transitions_) result.transitions.push_back(transition);
    return result;
  }

 private:
  struct Place {
    State state{};
    std::optional<double> since = std::nullopt;
  };

  static std::size_t index(State state) { return static_cast<std::size_t>(state); }

  Transition& at(State from, State to, const std::string& cause) {
    const Transition none{.from = index(from), .to = index(to), .cause = cause};
    return transitions_.try_emplace({none.from, none.to, cause}, none).first->second;
  }

  void spend(const Place& place, double t) {
    if (place.since) time_[index(place.state)] += std::max(0.0, t - *place.since);
  }

  std::map<std::tuple<std::size_t, std::size_t, std::string>, Transition> transitions_;
  std::map<std::string, Place> places_;
  std::vector<double> time_ = std::vector<double>(log::kWords<State>.size());
};

Follower<Status> follower_of_parameters(Count stage) {
  std::vector<std::tuple<Status, Status, std::string>> declared;
  for (const log::Move& move : verify::legal_moves(stage)) {
    declared.emplace_back(move.from, move.to, name_of(move.cause));
  }
  return Follower<Status>(declared);
}

Follower<GradientStatus> follower_of_gradients() {
  std::vector<std::tuple<GradientStatus, GradientStatus, std::string>> declared;
  for (const log::GradientMove& move : verify::legal_gradient_moves()) {
    declared.emplace_back(move.from, move.to, "");
  }
  return Follower<GradientStatus>(declared);
}

/// Both machines of a run.
struct Followers {
  Selection selection;
  Follower<Status> parameters;
  Follower<GradientStatus> gradients;
  Count moves = 0;  // of selected parameters or not

  void see(const log::Event& event) {
    if (const auto* move = std::get_if<log::ParamEvent>(&event.what)) {
      ++moves;
      if (!selected(move->parameter)) return;
      parameters.moved(move->parameter, event.t, move->from, move->to,
                       std::string(name_of(move->cause)));
    } else if (const auto* gradient = std::get_if<log::GradEvent>(&event.what)) {
      ++moves;
      if (!selected(gradient->parameter)) return;
      gradients.moved(gradient->parameter, event.t, gradient->from, gradient->to, "");
    }
  }

  bool selected(const std::string& parameter) const {
    return !selection || selection->count(parameter) > 0;
  }
};

void follow_rank(const log::RunFolder& folder, Count rank, Followers& followers,
                 std::vector<std::string>& remarks) {
  const std::string name = log::event_file_name(rank);
  std::ifstream in(folder.path / name, std::ios::binary);
  if (!in || !std::filesystem::is_regular_file(folder.path / name)) {
    remarks.push_back(fmt::format("there is no log of rank {}", rank));
    return;
  }
  log::EventLines lines(in);
  double last = 0;
  Count unreadable = 0;
  while (const auto line = lines.next()) {
    if (line->event) {
      followers.see(*line->event);
      last = line->event->t;
    } else {
      ++unreadable;
    }
  }
  followers.parameters.end_rank(last);
  followers.gradients.end_rank(last);
  if (unreadable > 0) {
    remarks.push_back(fmt::format("{} has {} line(s) that cannot be read", name, unreadable));
  }
  if (lines.cut_in() > 0) {
    remarks.push_back(fmt::format("{} ends in the middle of line {}", name, lines.cut_in()));
  }
}

void remark_on_end(const log::RunFolder& folder, std::vector<std::string>& remarks) {
  if (folder.failure) {
    remarks.push_back(fmt::format("the run ended with {}", folder.failure->code));
  } else if (!folder.summary) {
    remarks.emplace_back("the run did not end: there is no summary.json");
  }
}

}  // namespace

std::optional<double> Transition::mean_time() const {
  if (timed == 0) return std::nullopt;
  return time / static_cast<double>(timed);
}

Observed observe(const log::RunFolder& folder, const Selection& selection) {
  const log::Run& run = folder.run;
  Observed result{.name = folder.path.string(),
                  .stage = run.stage,
                  .ranks = run.world_size,
                  .selected = selection ? selection->size() : run.parameters.size(),
                  .all = run.parameters.size(),
                  .parameters = {},
                  .gradients = {},
                  .remarks = {}};
  Followers followers{selection, follower_of_parameters(run.stage), follower_of_gradients()};
  for (Count rank = 0; rank < run.world_size; ++rank) {
    follow_rank(folder, rank, followers, result.remarks);
  }
  if (followers.moves == 0) {
    throw log::Unreadable(fmt::format("{} has no events of states", folder.path.string()),
                          "make the run again with --log-level events");
  }
  remark_on_end(folder, result.remarks);
  result.parameters = followers.parameters.machine();
  result.gradients = followers.gradients.machine();
  return result;
}

}  // namespace zerolab::diagram
