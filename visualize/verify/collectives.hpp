#pragma once

#include <string>
#include <vector>

#include "visualize/log/run_folder.hpp"
#include "visualize/verify/findings.hpp"

namespace zerolab::verify {

/// The collectives that one rank has waited for, in order.
class Collectives {
 public:
  Collectives(Count rank, const Reporter& report) : rank_(rank), report_(report) {}

  void see(const log::Event& event, const log::CommEvent& comm);
  void see(const log::Event& event, const log::StepEvent& step);

  /// Of rank 0, for a log that is whole: the totals against summary.json.
  void compare_with(const log::Summary& summary, const log::Run& run) const;

  /// All ranks call the same collectives, with `whole` logs equally many; if there are the logs of
  /// all `world_size` ranks, they also send together what theory says.
  static void compare(const std::vector<const Collectives*>& ranks, Count world_size, bool whole);

 private:
  struct Call {
    Count line = 0;
    log::Op op = log::Op::barrier;
    Count elements = 0;
    log::Dtype dtype = log::Dtype::bytes;
    Count bytes_sent = 0;
    std::string owner;
    bool same(const Call& other) const;
    std::string text() const;
  };
  bool differs(const Collectives& first, std::size_t number, bool whole) const;

  Count rank_;
  const Reporter& report_;
  std::vector<Call> calls_;
  log::TrafficByOp training_, validation_, generation_;
  Count steps_done_ = 0;
};

}  // namespace zerolab::verify
