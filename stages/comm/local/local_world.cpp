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

/// Messages from one rank to another whose other half has not come yet: at any moment only sends
/// wait or only receives, since the k-th of one meets the k-th of the other.
struct Channel {
  std::deque<std::span<const std::byte>> sends;
  std::deque<std::span<std::byte>> receives;
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
  explicit MeetingPlace(int ranks)
      : size_(ranks), channels_(index(ranks) * index(ranks)), members_(index(ranks)) {}

  int size() const { return size_; }

  void exchange(int self, const Exchange& round) {
    std::unique_lock lock(mutex_);
    if (const auto failed = lowest_failed()) throw PeerFailed(*failed);
    const std::vector<Copy> copies = meet(self, round);
    lock.unlock();
    for (const Copy& copy : copies) {
      const std::size_t bytes = std::min(copy.from.size(), copy.to.size());
      if (bytes > 0) std::memcpy(copy.to.data(), copy.from.data(), bytes);
    }
    lock.lock();
    for (const Copy& copy : copies) {
      Member& partner = member(copy.partner);
      if (--partner.open == 0) partner.changed.notify_all();
    }
    wait_for_the_others(self, round, lock);
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

 private:
  struct Member {
    std::condition_variable changed;
    Index open = 0;  // messages of the current exchange that are not through
    std::optional<std::string> mismatch;
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
    const auto pair = [&](std::span<const std::byte> from, std::span<std::byte> to, int partner) {
      if (from.size() != to.size()) {
        member(self).mismatch = member(partner).mismatch =
            fmt::format("{} ({}): a message between ranks {} and {} has {} bytes, {} are expected",
                        name_of(round.op), round.owner, self, partner, from.size(), to.size());
      }
      copies.push_back({from, to, partner});
    };
    for (const Send& send : round.sends) {
      Channel& line = channel(self, send.to);
      if (line.receives.empty()) {
        line.sends.push_back(send.data);
        ++member(self).open;
      } else {
        pair(send.data, line.receives.front(), send.to);
        line.receives.pop_front();
      }
    }
    for (const Receive& receive : round.receives) {
      Channel& line = channel(receive.from, self);
      if (line.sends.empty()) {
        line.receives.push_back(receive.data);
        ++member(self).open;
      } else {
        pair(line.sends.front(), receive.data, receive.from);
        line.sends.pop_front();
      }
    }
    return copies;
  }

  void wait_for_the_others(int self, const Exchange& round, std::unique_lock<std::mutex>& lock) {
    Member& me = member(self);
    me.changed.wait(lock, [&] { return me.open == 0 || lowest_failed(); });
    if (me.open > 0) {
      withdraw(self, round);
      // What is left is being copied at this moment, out of or into memory that must stay until
      // then.
      me.changed.wait(lock, [&] { return me.open == 0; });
      throw PeerFailed(*lowest_failed());
    }
    if (me.mismatch) {
      throw Error(Code::communication, *std::exchange(me.mismatch, std::nullopt),
                  "every rank must call the same collectives with the same sizes");
    }
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

 private:
  MeetingPlace& place_;
  int rank_;
};

LocalWorld::LocalWorld(int ranks) : place_(std::make_unique<MeetingPlace>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(*place_, rank));
}

LocalWorld::~LocalWorld() = default;

}  // namespace zerolab
