#include "stages/comm/comm_stream.hpp"

#include <atomic>
#include <utility>

namespace zerolab {
namespace {

double seconds(CommStream::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

Index bytes_sent(const CommStream::Operation& operation) {
  Index sum = 0;
  for (const CommStream::Round& round : operation.rounds) {
    for (const Send& send : round.exchange.sends) sum += static_cast<Index>(send.data.size());
  }
  return sum;
}

}  // namespace

CommTotals& CommTotals::operator+=(const CommTotals& other) {
  for (const auto& [op, added] : other.traffic) {
    Traffic& sum = traffic[op];
    sum.calls += added.calls;
    sum.elements += added.elements;
    sum.bytes_sent += added.bytes_sent;
  }
  busy_seconds += other.busy_seconds;
  exposed_seconds += other.exposed_seconds;
  return *this;
}

CommTotals CommTotals::operator-(const CommTotals& earlier) const {
  CommTotals result;
  for (const auto& [op, now] : traffic) {
    const auto found = earlier.traffic.find(op);
    const Traffic before = found == earlier.traffic.end() ? Traffic{} : found->second;
    if (now.calls == before.calls) continue;
    result.traffic[op] = {now.calls - before.calls, now.elements - before.elements,
                          now.bytes_sent - before.bytes_sent};
  }
  result.busy_seconds = busy_seconds - earlier.busy_seconds;
  result.exposed_seconds = exposed_seconds - earlier.exposed_seconds;
  return result;
}

struct Pending::Job {
  CommStream::Operation operation;
  CommStream::Clock::time_point issued, started, finished;
  std::exception_ptr error;
  std::atomic<bool> done = false;  // everything else in here is the compute thread's again
};

Pending& Pending::operator=(Pending&& other) noexcept {
  if (this != &other) {
    settle();
    job_ = std::move(other.job_);
  }
  return *this;
}

Pending::~Pending() { settle(); }

void Pending::settle() noexcept {
  if (job_ == nullptr) return;
  job_->done.wait(false);
  job_->operation.buffers.clear();  // here: the Ledger is the compute thread's
  job_.reset();
}

CommStream::CommStream(Communicator& communicator, Device& device, Ledger& ledger,
                       Recorder& recorder)
    : communicator_(communicator),
      device_(device),
      ledger_(ledger),
      recorder_(recorder),
      worker_([this] { work(); }) {}

CommStream::~CommStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

Pending CommStream::enqueue(Operation operation) {
  auto job = std::make_shared<Job>();
  job->operation = std::move(operation);
  job->issued = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(job);
  }
  changed_.notify_all();
  return Pending(std::move(job));
}

void CommStream::wait(Pending& pending) {
  if (!pending) return;
  const Clock::time_point waited = Clock::now();
  Job& job = *pending.job_;
  {
    // If the worker has not woken up yet, this thread need not wait for it to.
    std::unique_lock lock(mutex_);
    while (!job.done) {
      if (running_) {
        changed_.wait(lock);
      } else {
        run_next(lock);
      }
    }
  }
  totals_.exposed_seconds += seconds(Clock::now() - waited);
  const Pending finished = std::move(pending);
  if (job.error) std::rethrow_exception(job.error);
  account(job, waited);
}

void CommStream::account(const Job& job, Clock::time_point waited) {
  const Operation& operation = job.operation;
  const Index sent = bytes_sent(operation);
  totals_.busy_seconds += seconds(job.finished - job.started);
  Traffic& traffic = totals_.traffic[operation.op];
  traffic.calls += 1;
  traffic.elements += operation.elements;
  traffic.bytes_sent += sent;
  if (!recorder_.active()) return;
  const auto at = [this](Clock::time_point time) { return recorder_.microseconds(time); };
  recorder_.record(CommEvent{name_of(operation.op), operation.elements, name_of(operation.dtype),
                             sent, at(job.issued), at(job.started), at(job.finished), at(waited),
                             operation.owner});
}

void CommStream::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !running_ && (stopping_ || !queue_.empty()); });
    if (queue_.empty()) return;
    run_next(lock);
  }
}

void CommStream::run_next(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Job> job = std::move(queue_.front());
  queue_.pop_front();
  running_ = true;
  job->error = failure_;
  lock.unlock();
  job->started = Clock::now();
  if (!job->error) job->error = run(*job);
  job->finished = Clock::now();
  lock.lock();
  failure_ = job->error;
  running_ = false;
  job->done = true;
  job->done.notify_all();
  changed_.notify_all();
}

std::exception_ptr CommStream::run(Job& job) {
  try {
    for (Round& round : job.operation.rounds) {
      communicator_.exchange(round.exchange);
      if (round.then) round.then(device_);
    }
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace zerolab
