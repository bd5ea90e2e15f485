#include "lab/signals.hpp"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

using Clock = std::chrono::steady_clock;

// A terminal may send a signal to the whole group and mpirun pass it on as well: that is one.
constexpr std::chrono::seconds kOneSignal{1};

sigset_t handled() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

Signals::Signals() {
  const sigset_t set = handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this] { watch(); });
}

Signals::~Signals() {
  stopping_ = true;
  pthread_kill(watcher_.native_handle(), SIGTERM);  // wakes it
  watcher_.join();
  const sigset_t set = handled();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Signals::watch() {
  const sigset_t set = handled();
  Clock::time_point first;
  for (;;) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    if (stopping_) return;
    const Clock::time_point now = Clock::now();
    if (received_ == 0) {
      first = now;
      received_ = signal;
    } else if (now - first > kOneSignal) {
      std::_Exit(128 + signal);
    }
  }
}

void Signals::throw_if_received(const Signature& signature) const {
  const int signal = received_;
  if (signal == 0) return;
  const std::string when = signature.where.empty() ? signature.owner : signature.where;
  if (signal == SIGINT) {
    throw Error(Code::interrupted, fmt::format("interrupted (SIGINT) in {}", when),
                "nothing is wrong: the logs are complete up to here");
  }
  throw Error(Code::terminated, fmt::format("told to end (SIGTERM) in {}", when),
              "nothing is wrong here: whoever sent the signal, such as a batch system, knows why");
}

}  // namespace zerolab
