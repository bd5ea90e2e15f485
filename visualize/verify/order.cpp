#include "visualize/verify/order.hpp"

#include <fmt/format.h>

#include <tuple>

namespace zerolab::verify {

void Order::see(const log::Event& event) {
  if (event.rank != rank_) {
    report_(Kind::other_rank, event.line, fmt::format("an event of rank {}", event.rank));
  }
  if (event.seq != next_seq_) {
    report_(Kind::sequence, event.line,
            fmt::format("seq is {}, {} comes next", event.seq, next_seq_));
  }
  next_seq_ = event.seq + 1;
  const bool first = last_.line == 0;
  if (!first && event.t < last_.t) {
    report_(Kind::going_back, event.line,
            fmt::format("t is {} after {} in line {}", event.t, last_.t, last_.line));
  } else if (std::tie(event.step, event.micro_step) < std::tie(last_.step, last_.micro_step)) {
    report_(Kind::going_back, event.line,
            fmt::format("step {}, micro-step {} after step {}, micro-step {}", event.step,
                        event.micro_step, last_.step, last_.micro_step));
  }
  last_ = {.line = event.line,
           .t = event.t,
           .step = event.step,
           .micro_step = event.micro_step,
           .what = {}};
}

}  // namespace zerolab::verify
