#include "stages/comm/patience.hpp"

#include <fmt/format.h>

#include "stages/base/error.hpp"

namespace zerolab {

Wait::Wait(const Patience& patience, const Signature& signature)
    : patience_(patience), signature_(signature), begin_(std::chrono::steady_clock::now()) {}

void Wait::check() const {
  if (patience_.look_around) patience_.look_around(signature_);
  if (patience_.timeout.count() == 0) return;
  if (std::chrono::steady_clock::now() - begin_ < patience_.timeout) return;
  throw Error(Code::comm_timeout,
              fmt::format("the ranks do not come together: a collective has not ended in {} s",
                          std::chrono::duration<double>(patience_.timeout).count()),
              "look at the rank that does not answer or is elsewhere (--check-collectives finds "
              "the first collective that differs); if one only computes for long, raise "
              "--comm-timeout, 0 waits for ever");
}

}  // namespace zerolab
