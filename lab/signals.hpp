#pragma once

#include <atomic>
#include <thread>

#include "stages/comm/signature.hpp"

namespace zerolab {

/// While it lives, SIGINT and SIGTERM end the run in order: the logs are flushed and one message is
/// written. One that comes more than a second after the first ends the process at once, for whoever
/// has no patience. Make it before any thread starts and before MPI is initialised, since the
/// threads of both must not take the signals.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// For Patience::look_around. Throws Error (Code::interrupted, Code::terminated).
  void throw_if_received(const Signature& signature) const;

 private:
  void watch();

  std::atomic<int> received_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread watcher_;
};

}  // namespace zerolab
