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
    if (now.calls == before.calls && now.bytes_sent == before.bytes_sent) continue;
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
  Index extra_bytes_sent = 0;
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
  // Not the atomic's own wait, through whose end libstdc++ 12 sometimes sleeps.
  while (!job_->done) std::this_thread::sleep_for(std::chrono::microseconds(100));
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
  Signature& signature = operation.signature;
  signature.sequence = ++enqueued_;
  signature.where = recorder_.where();
  const std::uint64_t label = fingerprint(signature);
  for (std::size_t i = 0; i < operation.rounds.size(); ++i) {
    Exchange& exchange = operation.rounds[i].exchange;
    exchange.signature = signature;
    exchange.round = static_cast<Index>(i);
    exchange.label = label;
  }
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
  const Signature& signature = job.operation.signature;
  const Index sent = bytes_sent(job.operation);
  totals_.busy_seconds += seconds(job.finished - job.started);
  Traffic& traffic = totals_.traffic[signature.op];
  traffic.calls += 1;
  traffic.elements += signature.elements;
  traffic.bytes_sent += sent;
  if (job.extra_bytes_sent > 0) totals_.traffic[Op::control].bytes_sent += job.extra_bytes_sent;
  if (!recorder_.active()) return;
  const auto at = [this](Clock::time_point time) { return recorder_.microseconds(time); };
  recorder_.record(CommEvent{name_of(signature.op), signature.elements, name_of(signature.dtype),
                             sent, at(job.issued), at(job.started), at(job.finished), at(waited),
                             signature.owner});
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
  changed_.notify_all();
}

std::exception_ptr CommStream::run(Job& job) {
  const Index before = communicator_.extra_bytes_sent();
  try {
    for (Round& round : job.operation.rounds) {
      communicator_.exchange(round.exchange);
      if (round.then) round.then(device_);
    }
    job.extra_bytes_sent = communicator_.extra_bytes_sent() - before;
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace zerolab
