#pragma once

#include <string_view>
#include <vector>

#include "tests/support/run_ranks.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {

/// Trains, and lets `look(result, stamp, event)` see every event of a rank; the results by rank.
template <typename Result, typename Look>
std::vector<Result> observed(int ranks, const Training& training, Look look) {
  return run_ranks(ranks, [&](Communicator& communicator) {
    Recorder recorder(communicator.rank());
    Result result{};
    recorder.observe([&](const Stamp& stamp, const Event& event) { look(result, stamp, event); });
    train(communicator, recorder, training);
    return result;
  });
}

inline bool reduces(const CommEvent& comm) {
  return comm.op == name_of(Op::reduce_scatter) || comm.op == name_of(Op::all_reduce);
}

/// Elements of every reduction that rank 0 made, in order.
inline std::vector<Index> reductions(int ranks, const Training& training) {
  return observed<std::vector<Index>>(
      ranks, training, [](std::vector<Index>& elements, const Stamp&, const Event& event) {
        const auto* comm = std::get_if<CommEvent>(&event);
        if (comm != nullptr && reduces(*comm)) elements.push_back(comm->elements);
      })[0];
}

}  // namespace zerolab::test
