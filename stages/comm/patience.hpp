#pragma once

#include <chrono>
#include <functional>

#include "stages/comm/signature.hpp"

namespace zerolab {

/// What may end an exchange beside its completion and a peer's failure.
struct Patience {
  /// The longest wait for the other ranks; 0: for ever.
  std::chrono::milliseconds timeout{0};
  /// Called before an exchange and now and then while it waits, by the thread that waits. May throw
  /// Error, for instance because the user wants the run to end.
  std::function<void(const Signature&)> look_around = {};
};

/// One wait, from its construction. `patience` and `signature` must outlive it.
class Wait {
 public:
  Wait(const Patience& patience, const Signature& signature);

  /// Throws Error (Code::comm_timeout), or what look_around throws.
  void check() const;

 private:
  const Patience& patience_;
  const Signature& signature_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace zerolab
