#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "stages/trace/events.hpp"

namespace zerolab {

/// Where in the training something happens.
struct Place {
  Index step = 0;
  Index micro_step = 0;
  Phase phase = Phase::set_up;
  std::string module = {};  // that runs; empty if none does
};
/// For messages: "step 3, micro-step 0, forward of 'head'".
std::string to_string(const Place& place);

/// Records the events of one rank: as JSON lines to a stream, and to whoever observes.
/// Used by the compute thread of the rank only, so it needs no lock.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;
  using Observer = std::function<void(const Stamp&, const Event&)>;

  /// `lines` may be null: then only observers see the events.
  explicit Recorder(int rank, std::unique_ptr<std::ostream> lines = nullptr);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void observe(Observer observer) { observers_.push_back(std::move(observer)); }

  /// The stream gets step, checkpoint and note events only; observers still see all.
  void write_steps_only() { steps_only_ = true; }

  /// From now on events carry this position.
  void set_step(Index step, Index micro_step);
  void set_phase(Phase phase);
  Phase phase() const { return phase_; }
  Index step() const { return step_; }
  Index micro_step() const { return micro_step_; }

  /// Modules begin and end like brackets; `name` must outlive its module's run.
  void begin_module(std::string_view name) { modules_.push_back(name); }
  void end_module() { modules_.pop_back(); }
  /// After an exception nobody says that they ended.
  void end_all_modules() { modules_.clear(); }
  /// Where the rank is, for messages.
  std::string where() const;
  /// The same into a Place that is there already: its text is overwritten, not taken anew.
  void tell_place(Place& place) const;
  int rank() const { return rank_; }

  /// Now is time 0. Events recorded before are kept until this call and get negative times.
  void start_clock();

  /// Microseconds of `at` on this recorder's clock.
  double microseconds(Clock::time_point at) const;

  bool active() const { return lines_ != nullptr || !observers_.empty(); }
  void record(const Event& event);

  /// Writes everything recorded so far to the stream and flushes it.
  void flush();

 private:
  void set_place();
  void write(Clock::time_point at, const Event& event);

  int rank_;
  std::unique_ptr<std::ostream> lines_;
  std::vector<Observer> observers_;
  Clock::time_point epoch_;
  bool started_ = false;
  bool steps_only_ = false;
  Index seq_ = 0;
  Index step_ = 0;
  Index micro_step_ = 0;
  Phase phase_ = Phase::set_up;
  std::string place_;                      // step, micro-step and phase as they stand in a line
  std::vector<std::string_view> modules_;  // those that run, the innermost last
  std::string buffer_;
};

}  // namespace zerolab
