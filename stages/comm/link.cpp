#include "stages/comm/link.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace zerolab {

double LinkCommunicator::cost(const Exchange& round) const {
  if (round.sends.empty() && round.receives.empty())
    return 0;  // one rank: nothing crosses the link
  std::size_t sent = 0;
  std::size_t received = 0;
  for (const Send& send : round.sends) sent += send.data.size();
  for (const Receive& receive : round.receives) received += receive.data.size();
  const auto bytes = static_cast<double>(std::max(sent, received));
  return link_.latency + (link_.bandwidth > 0 ? bytes / link_.bandwidth : 0);
}

void LinkCommunicator::exchange(const Exchange& round) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point done = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                    std::chrono::duration<double>(cost(round)));
  CommunicatorWrapper::exchange(round);
  if (Clock::now() >= done) return;
  // A sleep is 50 us too long by default, more than many a latency. This is the thread's own.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  std::this_thread::sleep_until(done);
}

}  // namespace zerolab
