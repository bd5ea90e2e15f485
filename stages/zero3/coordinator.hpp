#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "stages/engine/stage.hpp"

namespace zerolab {

/// One visit in a trace: which module, doing what, reading which parameters (their ids).
struct Stop {
  Index module = 0;  // any number that means this module
  VisitKind kind = VisitKind::forward;
  std::vector<Index> reads;

  bool operator==(const Stop&) const = default;
};

/// What may be gathered ahead of time, and what may stay. In elements, without padding.
struct FetchLimits {
  Index prefetch_bucket = 0;  // read by the stops ahead, and gathered for them
  Index max_live = 0;         // whole or on its way; a module's own fetch may go beyond it
  Index reuse_distance = 0;   // read between two uses; less than this, and a parameter stays
};

/// A thing for the executor to do now.
struct Action {
  enum class Kind {
    gather,   // start one all-gather of these
    wait,     // until that all-gather is done; then they are whole
    release,  // let these go
  };
  Kind kind;
  Cause cause;
  std::vector<Index> parameters;

  bool operator==(const Action&) const = default;
};

/// Where a pass left the recorded order: no `expected`, and it went on beyond the end; no `got`,
/// and it ended early.
struct OrderChange {
  Index at = 0;  // visits before it in this pass
  std::optional<Stop> expected, got;
};

/// Something that the coordinator was told.
struct Happening {
  enum class Kind { before, also_reads, after, open_scope, close_scope, publish };
  Kind kind;
  Stop stop = {};       // or, for scopes, what they hold in `reads`
  Index parameter = 0;  // read besides
  std::vector<bool> updated = {};
};

struct Decision {
  std::vector<Action> actions;
  std::optional<OrderChange> change;
};

/// Decides what stage 3 gathers and lets go, and when. It touches nothing: visits go in, actions
/// come out, and what it knows is a value that can be copied, so that its decisions can be explored
/// exhaustively (tests/zero3/exploration_test.cpp).
///
/// The first pass records the order of visits. From the second on, each visit also gathers what the
/// next ones read, as far as the limits allow, and keeps what is soon read again. A pass that
/// leaves the recorded order is recorded anew from there, without prefetching. Passes that train
/// and evaluations have an order of their own each.
class Coordinator {
 public:
  /// By parameter id: its elements, and whether it stays whole for good.
  Coordinator(std::vector<Index> elements, std::vector<bool> persistent, FetchLimits limits);
  Coordinator() = default;

  /// A module begins: afterwards everything it reads is whole.
  Decision before(const Stop& stop);
  /// It runs, and reads one parameter more; its visit is recorded with it from now on.
  Decision also_reads(const Stop& stop, Index parameter);
  /// It has run.
  Decision after(const Stop& stop);
  /// The pass is over, or an exception ended it: then its order teaches nothing.
  Decision end_pass(bool completed);
  /// A scope outside of the model holds these whole, from one to the other.
  Decision open_scope(const std::vector<Index>& parameters);
  Decision close_scope(const std::vector<Index>& parameters);
  /// These weights have been updated: copies of the persistent ones among them are stale.
  Decision publish(const std::vector<bool>& updated);

  /// The order of the last pass, if that pass recorded it.
  const std::vector<Stop>* recorded() const;

  FetchCounts counts() const { return counts_; }
  Index live() const { return live_; }

  bool in_pass() const { return in_pass_; }

  /// Whether each parameter is whole or on its way.
  using Live = std::vector<bool>;
  /// What would have been live under other limits, if the same had happened: this pass is decided
  /// over again (between passes the latest event), and `look` is called at its beginning and after
  /// each event. `asked_for`: of the latest decision nothing behind the gathering of this parameter
  /// has been carried out.
  void decide_again(const FetchLimits& limits, const std::vector<bool>& persistent,
                    std::optional<Index> asked_for,
                    const std::function<void(const Live& live)>& look) const;

  /// All-gathers that may be on their way at a time. Two keep a link busy; more of them let large
  /// ones and those of small modules (norms) mix.
  static constexpr std::size_t kMostInFlight = 8;

 private:
  enum class Where { away, coming, whole };
  struct Knowledge {
    Index elements = 0;
    bool persistent = false;
    Where where = Where::away;
    bool ahead = false;             // prefetched, and not read since
    Index active = 0;               // running modules and scopes that read it
    bool gathered = false;          // it has been before, or had been if it persisted
    bool gathered_at_rest = false;  // the same when `history_` began,
    Index active_at_rest = 0;       // and who read it then
  };
  struct Trace {
    std::vector<Stop> stops;
    bool complete = false;  // a whole pass has gone this way
  };
  struct Ahead {
    Index parameter;
    std::size_t stop;
  };

  Knowledge& known(Index parameter) { return parameters_[static_cast<std::size_t>(parameter)]; }
  const Knowledge& known(Index parameter) const {
    return parameters_[static_cast<std::size_t>(parameter)];
  }
  Trace& trace() { return traces_[evaluating_ ? 1 : 0]; }
  const Trace& trace() const { return traces_[evaluating_ ? 1 : 0]; }
  bool follows() const { return in_pass_ && trace().complete; }

  void remember(Happening happening);
  Decision repeat(const Happening& happening);
  Coordinator at_rest(const FetchLimits& limits, const std::vector<bool>& persistent) const;
  void follow(const Stop& stop, Decision& decision);
  void forget_rest(Decision& decision, std::optional<Stop> got);
  std::vector<Ahead> ahead() const;
  bool stays(Index parameter) const;
  void prefetch(Decision& decision);
  void gather(Decision& decision, std::vector<Index> parameters, Cause cause);
  std::vector<Index> take(const std::vector<Index>& parameters);
  Decision give_back(const std::vector<Index>& parameters);
  void wait_for(Decision& decision, const std::vector<Index>& parameters);
  void let_go(Decision& decision, std::vector<Index> parameters, Cause cause);
  void let_go_unless(Decision& decision, const std::vector<Index>& needed);

  std::vector<Knowledge> parameters_;
  FetchLimits limits_;
  std::array<Trace, 2> traces_;  // of training passes, of evaluations
  bool in_pass_ = false;
  bool evaluating_ = false;
  bool just_recorded_ = false;
  std::size_t position_ = 0;  // visits begun in this pass
  struct InFlight {
    Cause cause;
    std::vector<Index> parameters;
  };
  std::vector<InFlight> in_flight_;  // oldest first
  Index live_ = 0;                   // elements that are not away
  // Of this pass; between passes the latest. Shared, since copies of a coordinator are made freely.
  std::vector<std::shared_ptr<const Happening>> history_;
  FetchCounts counts_;
};

}  // namespace zerolab
