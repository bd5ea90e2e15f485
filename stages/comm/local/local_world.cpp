#include "stages/comm/local/local_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace zerolab {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::milliseconds kBetweenChecks{50};

/// One half of a message.
template <typename Byte>
struct Half {
  std::span<Byte> data;
  std::uint64_t label;
};

/// Messages from one rank to another whose other half has not come yet: at any moment only sends
/// wait or only receives, since the k-th of one meets the k-th of the other.
struct Channel {
  std::deque<Half<const std::byte>> sends;
  std::deque<Half<std::byte>> receives;
};

/// A send and a receive that met; `partner` waits for it to be done.
struct Copy {
  std::span<const std::byte> from;
  std::span<std::byte> to;
  int partner;
};

}  // namespace

/// Everything the ranks share. One lock guards it; the bytes themselves are copied outside.
class LocalWorld::MeetingPlace {
 public:
  MeetingPlace(int ranks, Patience patience)
      : size_(ranks),
        patience_(std::move(patience)),
        channels_(index(ranks) * index(ranks)),
        members_(index(ranks)) {}

  int size() const { return size_; }

  void exchange(int self, const Exchange& round) {
    const Wait wait(patience_, round.signature);
    wait.check();
    std::unique_lock lock(mutex_);
    Member& me = member(self);
    me.latest = round.signature;
    if (const auto failed = lowest_failed()) {
      me.how = "comes too late to";
      throw PeerFailed(*failed);
    }
    const std::vector<Copy> copies = meet(self, round);
    lock.unlock();
    for (const Copy& copy : copies) {
      if (!copy.from.empty()) std::memcpy(copy.to.data(), copy.from.data(), copy.from.size());
    }
    lock.lock();
    for (const Copy& copy : copies) {
      Member& partner = member(copy.partner);
      if (--partner.open == 0) partner.changed.notify_all();
    }
    wait_for_the_others(self, round, wait, lock);
  }

  bool announce(int self) {
    std::unique_lock lock(mutex_);
    Member& me = member(self);
    me.failed = me.out = true;
    wake_everybody();
    const auto another_writes = [&] {
      return *lowest_failed() < self ||
             std::any_of(members_.begin(), members_.end(), [](auto& m) { return m.reporter; });
    };
    const auto all_out = [&] {
      return std::all_of(members_.begin(), members_.end(), [](auto& m) { return m.out; });
    };
    me.changed.wait_for(lock, kPatience, [&] { return another_writes() || all_out(); });
    return me.reporter = !another_writes();
  }

  void acknowledge(int self) {
    const std::lock_guard lock(mutex_);
    member(self).out = true;
    wake_everybody();
  }

  std::vector<std::string> whereabouts() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> result;
    for (const Member& each : members_) {
      result.push_back(each.out ? fmt::format("{} {}", each.how, describe(each.latest)) : "");
    }
    return result;
  }

 private:
  struct Member {
    std::condition_variable changed;
    Index open = 0;  // messages of the current exchange that are not through
    std::optional<Error> mismatch;
    std::string_view how = "is at";  // related to `latest`
    Signature latest;
    bool failed = false;
    bool out = false;       // will not write the message
    bool reporter = false;  // will
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  Member& member(int rank) { return members_[index(rank)]; }
  Channel& channel(int from, int to) { return channels_[index(from * size_ + to)]; }

  /// Pairs what the others left with what `self` brings, and leaves the rest for them.
  std::vector<Copy> meet(int self, const Exchange& round) {
    std::vector<Copy> copies;
    const auto pair = [&](Half<const std::byte> from, Half<std::byte> to, int partner) {
      if (const auto wrong = mismatch(self, partner, from, to)) {
        member(self).mismatch = member(partner).mismatch = wrong;
        member(partner).changed.notify_all();
        from.data = {};  // nothing moves
      }
      copies.push_back({from.data, to.data, partner});
    };
    for (const Send& send : round.sends) {
      Channel& line = channel(self, send.to);
      if (line.receives.empty()) {
        line.sends.push_back({send.data, round.label});
        ++member(self).open;
      } else {
        pair({send.data, round.label}, line.receives.front(), send.to);
        line.receives.pop_front();
      }
    }
    for (const Receive& receive : round.receives) {
      Channel& line = channel(receive.from, self);
      if (line.sends.empty()) {
        line.receives.push_back({receive.data, round.label});
        ++member(self).open;
      } else {
        pair(line.sends.front(), {receive.data, round.label}, receive.from);
        line.sends.pop_front();
      }
    }
    return copies;
  }

  static std::optional<Error> mismatch(int self, int partner, const Half<const std::byte>& from,
                                       const Half<std::byte>& to) {
    if (from.label != to.label) {
      return collective_mismatch(fmt::format(
          "a message between ranks {} and {} is of one for the sender, of another for the receiver",
          self, partner));
    }
    if (from.data.size() == to.data.size()) return std::nullopt;
    return Error(Code::communication,
                 fmt::format("a message between ranks {} and {} has {} bytes, {} are expected",
                             self, partner, from.data.size(), to.data.size()),
                 "every rank must call the same collectives with the same sizes");
  }

  void wait_for_the_others(int self, const Exchange& round, const Wait& wait,
                           std::unique_lock<std::mutex>& lock) {
    Member& me = member(self);
    me.how = "waits in";
    const auto over = [&] { return me.open == 0 || me.mismatch || lowest_failed(); };
    try {
      while (!me.changed.wait_for(lock, kBetweenChecks, over)) wait.check();
      if (me.mismatch) throw Error(*me.mismatch);
      if (me.open > 0) throw PeerFailed(*lowest_failed());
    } catch (...) {
      withdraw(self, round);
      // What is left is being copied at this moment, out of or into memory that must stay until
      // then.
      me.changed.wait(lock, [&] { return me.open == 0; });
      throw;
    }
    me.how = "is at";
  }

  void withdraw(int self, const Exchange& round) {
    for (const Send& send : round.sends) {
      auto& waiting = channel(self, send.to).sends;
      member(self).open -= static_cast<Index>(waiting.size());
      waiting.clear();
    }
    for (const Receive& receive : round.receives) {
      auto& waiting = channel(receive.from, self).receives;
      member(self).open -= static_cast<Index>(waiting.size());
      waiting.clear();
    }
  }

  std::optional<int> lowest_failed() const {
    for (int rank = 0; rank < size_; ++rank) {
      if (members_[index(rank)].failed) return rank;
    }
    return std::nullopt;
  }

  void wake_everybody() {
    for (Member& each : members_) each.changed.notify_all();
  }

  int size_;
  Patience patience_;
  std::mutex mutex_;
  std::vector<Channel> channels_;  // [from][to]
  std::vector<Member> members_;
};

class LocalWorld::Rank final : public Communicator {
 public:
  Rank(MeetingPlace& place, int rank) : place_(place), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return place_.size(); }
  std::string description() const override { return "threads"; }
  void exchange(const Exchange& round) override { place_.exchange(rank_, round); }
  bool announce_failure() override { return place_.announce(rank_); }
  void acknowledge_failure() override { place_.acknowledge(rank_); }
  std::vector<std::string> whereabouts() const override { return place_.whereabouts(); }

 private:
  MeetingPlace& place_;
  int rank_;
};

LocalWorld::LocalWorld(int ranks, Patience patience)
    : place_(std::make_unique<MeetingPlace>(ranks, std::move(patience))) {
  for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(*place_, rank));
}

LocalWorld::~LocalWorld() = default;

}  // namespace zerolab
