// All that can happen to the coordinator, up to a depth: every sequence of events from a start,
// judged by a small model of its own of where parameters are. What it covers is in
// stages/zero3/README.md.

#include <algorithm>
#include <array>

#include "stages/zero3/coordinator.hpp"
#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

constexpr std::array<Index, 3> kElements{1, 2, 4};
/// What the four modules read: one parameter, two, a shared one with another, nothing.
using Reads = std::array<std::vector<Index>, 4>;
const Reads kReads{std::vector<Index>{0}, std::vector<Index>{1, 2}, std::vector<Index>{0, 2}, {}};
/// The last module finds out while it runs that it reads this one, too.
constexpr std::size_t kLateReader = 3;
constexpr Index kReadLate = 0;
/// What a scope outside of the modules holds.
const std::vector<Index> kScope{0, 2};
constexpr Index kLargestModule = 6;
constexpr Index kMuch = 1000;

struct Limits {
  FetchLimits fetch;
  bool one_persists = false;
};

/// Whether scopes outside of the model come and go as well, and a module reads more than it said.
enum class Others { none, some };

/// Three parameters as they would be on a rank, and everything that must hold of them.
class World {
 public:
  explicit World(const Limits& limits)
      : limits_(limits),
        coordinator_({kElements.begin(), kElements.end()}, {limits.one_persists, false, false},
                     limits.fetch) {}

  bool running() const { return !stack_.empty(); }
  bool in_pass() const { return in_pass_; }
  std::size_t depth() const { return stack_.size(); }
  const std::string& complaint() const { return complaint_; }
  FetchCounts counts() const { return coordinator_.counts(); }

  void enter(std::size_t module) {
    in_pass_ = true;
    const std::vector<Index>& reads = reads_[module];
    stack_.push_back(module);
    for (const Index each : reads) ++at(each).readers;
    carry_out(coordinator_.before(stop(module)));
    for (const Index each : reads) expect(at(each).place == Place::whole, "read while not whole");
    check();
  }

  /// The late reader runs, once, and does not know yet.
  bool may_read_late() const {
    return running() && stack_.back() == kLateReader && reads_[kLateReader].empty() &&
           std::count(stack_.begin(), stack_.end(), kLateReader) == 1;
  }
  void read_late() {
    reads_[kLateReader] = {kReadLate};
    ++at(kReadLate).readers;
    carry_out(coordinator_.also_reads(stop(kLateReader), kReadLate));
    expect(at(kReadLate).place == Place::whole, "read late while not whole");
    check();
  }

  void leave() {
    const std::size_t module = stack_.back();
    stack_.pop_back();
    for (const Index each : reads_[module]) --at(each).readers;
    carry_out(coordinator_.after(stop(module)));
    check();
  }

  bool has_scope() const { return scope_; }
  void open_scope() {
    scope_ = true;
    for (const Index each : kScope) ++at(each).readers;
    carry_out(coordinator_.open_scope(kScope));
    for (const Index each : kScope) expect(at(each).place == Place::whole, "a scope of nothing");
    check();
  }
  void close_scope() {
    scope_ = false;
    for (const Index each : kScope) --at(each).readers;
    carry_out(coordinator_.close_scope(kScope));
    check();
  }

  void end(bool completed) {
    while (running()) leave();  // an exception passes through all of them
    carry_out(coordinator_.end_pass(completed));
    in_pass_ = false;
    if (scope_) close_scope();
    rest();
    carry_out(coordinator_.publish(std::vector<bool>(kElements.size(), true)));
    rest();
    if (limits_.one_persists) expect(at(0).place == Place::whole, "what persists is not there");
  }

 private:
  enum class Place { away, coming, whole };
  struct Known {
    Place place = Place::away;
    int readers = 0;
  };

  Known& at(Index parameter) { return parameters_[static_cast<std::size_t>(parameter)]; }
  static Index size_of(Index parameter) { return kElements[static_cast<std::size_t>(parameter)]; }
  bool persists(Index parameter) const { return limits_.one_persists && parameter == 0; }
  Stop stop(std::size_t module) const {
    return {static_cast<Index>(module), VisitKind::forward, reads_[module]};
  }
  void expect(bool holds, const std::string& otherwise) {
    if (!holds && complaint_.empty()) complaint_ = otherwise;
  }

  Index live() {
    Index sum = 0;
    for (Index i = 0; i < 3; ++i) sum += at(i).place == Place::away ? 0 : size_of(i);
    return sum;
  }

  void carry_out(const Decision& decision) {
    for (const Action& action : decision.actions) {
      expect(!action.parameters.empty(), "an action on nothing");
      switch (action.kind) {
        case Action::Kind::gather:
          for (const Index each : action.parameters) {
            expect(at(each).place == Place::away, "gathered twice");
            at(each).place = Place::coming;
          }
          if (action.cause == Cause::prefetch) {
            expect(live() <= limits_.fetch.max_live, "prefetched beyond max_live");
          }
          flights_.push_back(action.parameters);
          expect(flights_.size() <= Coordinator::kMostInFlight, "too many on their way");
          break;
        case Action::Kind::wait: {
          const auto flight = std::find(flights_.begin(), flights_.end(), action.parameters);
          expect(flight != flights_.end(), "waited for what nobody gathers");
          if (flight != flights_.end()) flights_.erase(flight);
          for (const Index each : action.parameters) at(each).place = Place::whole;
          break;
        }
        case Action::Kind::release:
          for (const Index each : action.parameters) {
            expect(at(each).place == Place::whole, "released while not whole");
            expect(at(each).readers == 0, "released while active");
            expect(!persists(each) || action.cause == Cause::step, "let go although it persists");
            at(each).place = Place::away;
          }
          break;
      }
    }
  }

  void check() {
    expect(coordinator_.live() == live(), "another count of live elements");
    if (limits_.fetch.reuse_distance > 0) return;
    Index ahead = 0;
    Index fetched = 0;  // whole or coming, without what persists
    for (Index i = 0; i < 3; ++i) {
      if (at(i).place == Place::away || persists(i)) continue;
      fetched += size_of(i);
      if (at(i).readers == 0) ahead += size_of(i);
    }
    expect(ahead <= limits_.fetch.prefetch_bucket, "more than the bucket ahead");
    if (stack_.size() <= 1 && !scope_) {
      expect(fetched <= std::max(limits_.fetch.max_live, kLargestModule),
             "more than max_live and the largest module");
    }
  }

  void rest() {
    for (Index i = 0; i < 3; ++i) {
      expect(at(i).place == Place::away || (persists(i) && at(i).place == Place::whole),
             "left behind");
    }
    expect(flights_.empty(), "left on its way");
  }

  Limits limits_;
  Coordinator coordinator_;
  Reads reads_ = kReads;
  std::array<Known, 3> parameters_;
  std::vector<std::vector<Index>> flights_;
  std::vector<std::size_t> stack_;
  bool in_pass_ = false;
  bool scope_ = false;
  std::string complaint_;
};

/// What a search has come across, so that it cannot be empty without anybody noticing.
struct Seen {
  Index sequences = 0, hits = 0, unused = 0;
};

/// Events: one of four modules runs; one of two begins, and others run inside; it ends; a scope
/// begins; it ends; a module reads one more; the pass ends; an exception ends the pass.
void explore(const World& world, int depth, Others others, std::string path, Seen& seen) {
  if (!world.complaint().empty()) {
    FAIL(path << ": " << world.complaint());
  }
  seen.hits = std::max(seen.hits, world.counts().hits);
  seen.unused = std::max(seen.unused, world.counts().unused);
  if (depth == 0) {
    ++seen.sequences;
    World ended = world;
    ended.end(true);
    if (!ended.complaint().empty()) FAIL(path << "end: " << ended.complaint());
    return;
  }
  const auto then = [&](const std::string& event, const auto& happens) {
    World next = world;
    happens(next);
    explore(next, depth - 1, others, path + event + ' ', seen);
  };
  for (std::size_t module = 0; module < kReads.size(); ++module) {
    then("run" + std::to_string(module), [&](World& next) {
      next.enter(module);
      next.leave();
    });
    if (world.depth() < 2 && module >= 2) {
      then("enter" + std::to_string(module), [&](World& next) { next.enter(module); });
    }
  }
  if (others == Others::some && !world.has_scope()) {
    then("open", [](World& next) { next.open_scope(); });
  }
  if (world.has_scope()) then("close", [](World& next) { next.close_scope(); });
  if (others == Others::some && world.may_read_late()) {
    then("late", [](World& next) { next.read_late(); });
  }
  if (world.running()) then("leave", [](World& next) { next.leave(); });
  if (world.in_pass() && !world.running()) then("end", [](World& next) { next.end(true); });
  if (world.in_pass()) then("abandon", [](World& next) { next.end(false); });
}

void explore_all(int depth, Others others) {
  for (const Index bucket : {Index{0}, Index{3}, kMuch}) {
    for (const Index live : {Index{4}, kMuch}) {
      for (const Index reuse : {Index{0}, Index{3}}) {
        for (const bool one_persists : {false, true}) {
          INFO("bucket " << bucket << ", max_live " << live << ", reuse distance " << reuse
                         << (one_persists ? ", one persists" : ""));
          Seen seen;
          explore(World({{bucket, live, reuse}, one_persists}), depth, others, {}, seen);
          CHECK(seen.sequences > 1000);
          CHECK((seen.hits > 0) == (bucket > 0));
          CHECK((seen.unused > 0) == (bucket > 0));
        }
      }
    }
  }
}

TEST_CASE("no sequence of six events makes the coordinator do anything illegal", "[zero3]") {
  explore_all(6, Others::none);
}

TEST_CASE(
    "no sequence of five events, scopes and late reads among them, makes it do anything illegal",
    "[zero3]") {
  explore_all(5, Others::some);
}

TEST_CASE("no sequence of seven events makes the coordinator do anything illegal",
          "[zero3][slow]") {
  explore_all(7, Others::none);
}

TEST_CASE(
    "no sequence of six events, scopes and late reads among them, makes it do anything illegal",
    "[zero3][slow]") {
  explore_all(6, Others::some);
}

}  // namespace
}  // namespace zerolab
