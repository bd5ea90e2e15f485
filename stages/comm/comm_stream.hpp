#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stages/comm/communicator.hpp"
#include "stages/device/device.hpp"
#include "stages/memory/ledger.hpp"
#include "stages/trace/recorder.hpp"

namespace zerolab {

/// What went over the wire for one kind of collective.
struct Traffic {
  Index calls = 0;
  Index elements = 0;
  Index bytes_sent = 0;
};

/// Everything a stream has done up to a moment; the difference of two is what happened between.
struct CommTotals {
  std::map<Op, Traffic> traffic;
  double busy_seconds = 0;     // in which a collective ran
  double exposed_seconds = 0;  // in which the compute thread stood waiting for one

  CommTotals& operator+=(const CommTotals& other);
  CommTotals operator-(const CommTotals& earlier) const;
};

/// A collective on its way. It holds the buffers that were taken for it; CommStream::wait gives
/// them back. Wait for every one; a Pending that is destroyed unwaited (an exception is passing by)
/// waits silently, so that whatever the collective reads and writes stays until it is done.
class [[nodiscard]] Pending {
 public:
  Pending() = default;
  Pending(Pending&& other) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  ~Pending();
  explicit operator bool() const { return job_ != nullptr; }

 private:
  friend class CommStream;
  struct Job;
  explicit Pending(std::shared_ptr<Job> job) : job_(std::move(job)) {}
  void settle() noexcept;

  std::shared_ptr<Job> job_;
};

/// The communication stream of one rank: a worker thread that runs collectives in the order they
/// were enqueued, beside the compute thread (on CUDA it will be a stream). The Ledger, the states
/// and the log are touched by the compute thread only: at enqueue and at wait.
///
/// After a collective failed, those behind it fail with the same error and are not begun.
class CommStream {
 public:
  using Clock = Recorder::Clock;

  CommStream(Communicator& communicator, Device& device, Ledger& ledger, Recorder& recorder);
  /// Finishes what is enqueued.
  ~CommStream();
  CommStream(const CommStream&) = delete;
  CommStream& operator=(const CommStream&) = delete;

  int rank() const { return communicator_.rank(); }
  int size() const { return communicator_.size(); }
  Ledger& ledger() { return ledger_; }

  /// One thing for the worker to do: an exchange, then arithmetic on what arrived.
  struct Round {
    Exchange exchange;
    std::function<void(Device&)> then = {};
  };
  /// A whole collective, as comm/collectives.cpp builds it. `signature.elements` counts the padded
  /// elements of all runs once; the stream fills in where and sequence.
  struct Operation {
    Signature signature;
    std::vector<Round> rounds = {};
    std::vector<Buffer> buffers = {};
  };

  Pending enqueue(Operation operation);
  /// Blocks the compute thread until the collective is done; rethrows what it threw; records the
  /// comm event and counts the traffic. Nothing happens if `pending` is empty.
  void wait(Pending& pending);

  /// Of everything waited for so far.
  CommTotals totals() const { return totals_; }

 private:
  using Job = Pending::Job;

  void work();
  void run_next(std::unique_lock<std::mutex>& lock);
  std::exception_ptr run(Job& job);
  void account(const Job& job, Clock::time_point waited);

  Communicator& communicator_;
  Device& device_;
  Ledger& ledger_;
  Recorder& recorder_;
  CommTotals totals_;
  Index enqueued_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;
  std::exception_ptr failure_;  // what the first failed collective threw
  bool running_ = false;        // somebody is at the front of the queue
  bool stopping_ = false;
  std::thread worker_;
};

}  // namespace zerolab
