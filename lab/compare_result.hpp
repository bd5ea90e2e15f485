#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stages/base/types.hpp"
#include "stages/comm/comm_stream.hpp"
#include "stages/memory/ledger.hpp"

namespace zerolab {

/// What one stage did, one entry per step where it is a list. Memory and traffic are those of rank
/// 0.
struct StageResult {
  int stage = 0;
  std::vector<double> loss, grad_norm;
  std::vector<std::uint64_t> param_hash;
  std::vector<double> step_seconds;
  std::vector<double> validation_loss;
  Usage peak;                     // at the moment of the highest total
  Usage category_peak;            // of each category by itself
  Usage steady;                   // at a step boundary
  std::map<Op, Traffic> traffic;  // over all steps
  double tokens_per_second = 0;   // of all ranks together
};

struct CompareResult {
  std::string model;
  Index parameters = 0;
  int world_size = 1;
  std::string transport;  // "threads", "mpi (MPICH 4.0.2)"
  Index gradient_accumulation_steps = 1;
  bool reduces_every_micro_step = false;  // stages 0 and 1 too
  std::vector<StageResult> stages;
};

/// Whether the stages did the same arithmetic.
struct Verdict {
  bool bit_identical = true;
  bool promised = true;          // with accumulation the order of addition truly differs
  double max_ulp = 0;            // largest distance between two losses of one step, fp32 ulps
  std::string first_difference;  // "step 3: the loss of stage 2 is ..., of stage 0 ..."
};
Verdict judge(const CompareResult& result);

}  // namespace zerolab
