#include "visualize/verify/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace zerolab::verify {
namespace {

using log::Op;
using log::Phase;

// What all ranks send together. Every rank's part goes to all others in an all-gather, and comes
// from all others in a reduce-scatter; an all-reduce is one after the other.
Count bytes_in_theory(Op op, Count elements, Count size, Count ranks) {
  const Count once = (ranks - 1) * elements * size;
  switch (op) {
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::broadcast:
      return once;
    case Op::all_reduce:
      return 2 * once;
    case Op::barrier:
      return 0;
    case Op::gather:  // but for the root's part, which is the first piece of the parameter
      return (elements - (elements + ranks - 1) / ranks) * size;
    case Op::control:  // everybody's goes to all others
      return ranks * once;
  }
  return 0;
}

}  // namespace

bool Collectives::Call::same(const Call& other) const {
  return op == other.op && elements == other.elements && dtype == other.dtype &&
         owner == other.owner;
}

std::string Collectives::Call::text() const {
  return fmt::format("{} of {}, {} elements {}", name_of(op), in_quotes(owner), elements,
                     name_of(dtype));
}

void Collectives::see(const log::Event& event, const log::CommEvent& comm) {
  const bool in_order = comm.issued <= comm.started && comm.started <= comm.finished &&
                        comm.issued <= comm.waited && comm.waited <= event.t &&
                        comm.finished <= event.t;
  if (!in_order) {
    report_(Kind::collective_times, event.line,
            fmt::format("{} of {}: issued {}, started {}, finished {}, waited for {}, told {} us",
                        name_of(comm.op), in_quotes(comm.owner), comm.issued, comm.started,
                        comm.finished, comm.waited, event.t));
  }
  calls_.push_back({event.line, comm.op, comm.elements, comm.dtype, comm.bytes_sent, comm.owner});

  if (event.step == 0) return;  // what happens before the first step is counted nowhere
  log::TrafficByOp* traffic = nullptr;
  if (event.phase == Phase::evaluate) {
    traffic = &validation_;
  } else if (event.phase == Phase::generate) {
    traffic = &generation_;
  } else if (event.phase != Phase::tear_down && event.step > steps_done_) {
    traffic = &training_;
  }
  if (traffic == nullptr) return;
  log::Traffic& sum = (*traffic)[comm.op];
  sum.calls += 1;
  sum.elements += comm.elements;
  sum.bytes_sent += comm.bytes_sent;
}

void Collectives::see(const log::Event& event, const log::StepEvent& /*step*/) {
  steps_done_ = event.step;
}

void Collectives::compare_with(const log::Summary& summary, const log::Run& run) const {
  const auto compare = [&](const char* what, log::TrafficByOp said, log::TrafficByOp found) {
    for (std::size_t i = 0; i < log::kWords<Op>.size(); ++i) {
      const Op op = static_cast<Op>(i);
      // The questions of --check-collectives are counted, and make no events.
      if (op == Op::control && run.check_collectives) {
        said[op].bytes_sent = found[op].bytes_sent;
      }
      if (said[op] == found[op]) continue;
      report_(Kind::traffic_summary, 0,
              fmt::format("summary.json has {} {} calls, {} elements, {} bytes under {}; the log "
                          "comes to {} calls, {} elements, {} bytes",
                          said[op].calls, name_of(op), said[op].elements, said[op].bytes_sent, what,
                          found[op].calls, found[op].elements, found[op].bytes_sent));
    }
  };
  compare("comm", summary.comm, training_);
  compare("validation_comm", summary.validation_comm, validation_);
  compare("generation_comm", summary.generation_comm, generation_);
}

void Collectives::compare(const std::vector<const Collectives*>& ranks, Count world_size,
                          bool whole) {
  const Collectives& first = *ranks.front();
  for (std::size_t i = 0;; ++i) {
    bool compared = true;
    Count bytes = 0;
    for (const Collectives* rank : ranks) {
      if (rank->differs(first, i, whole)) return;  // behind it nothing meets what it belongs to
      compared = compared && i < rank->calls_.size();
      if (compared) bytes += rank->calls_[i].bytes_sent;
    }
    if (!compared) return;
    const Call& call = first.calls_[i];
    const Count theory =
        bytes_in_theory(call.op, call.elements, log::size_of(call.dtype), world_size);
    if (ranks.size() < world_size || bytes == theory) continue;
    first.report_(Kind::collective_bytes, call.line,
                  fmt::format("collective {}, {}: all ranks together send {} bytes, theory says {}",
                              i + 1, call.text(), bytes, theory));
  }
}

bool Collectives::differs(const Collectives& first, std::size_t number, bool whole) const {
  const bool here = number < calls_.size();
  const bool there = number < first.calls_.size();
  if (here && there ? calls_[number].same(first.calls_[number]) : here == there || !whole) {
    return false;
  }
  const auto text_of = [number](const Collectives& rank) {
    if (number >= rank.calls_.size()) return std::string("none any more");
    return fmt::format("{} (line {})", rank.calls_[number].text(), rank.calls_[number].line);
  };
  report_(Kind::collective_order, here ? calls_[number].line : 0,
          fmt::format("collective {} is {}, on rank {} it is {}", number + 1, text_of(*this),
                      first.rank_, text_of(first)));
  return true;
}

}  // namespace zerolab::verify
