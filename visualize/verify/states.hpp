#pragma once

#include <limits>
#include <vector>

#include "visualize/verify/transfers.hpp"

namespace zerolab::verify {

/// Where a parameter is on one rank, as far as its log has been read.
struct State {
  log::Status status = log::Status::not_available;
  log::Cause cause = log::Cause::set_up;                         // of the latest move
  Count line = 0;                                                // of the latest move
  double whole_since = std::numeric_limits<double>::infinity();  // when it became AVAILABLE last,
  double whole_until = 0;                                        // and when it ceased to be
};

/// Replays the moves of all parameters of a rank against the reference table, and their gathers
/// against the all-gathers.
class States {
 public:
  States(const Catalogue& catalogue, const Reporter& report);

  void see(const log::Event& event, const log::ParamEvent& move);
  void see(const log::Event& event, const log::CommEvent& comm);

  const State& operator[](std::size_t parameter) const { return states_[parameter]; }

 private:
  std::string why_illegal(std::size_t parameter, const log::ParamEvent& move) const;

  const Catalogue& catalogue_;
  const Reporter& report_;
  Transfers gathers_;
  std::vector<State> states_;
};

}  // namespace zerolab::verify
