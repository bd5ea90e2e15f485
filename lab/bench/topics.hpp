#pragma once

#include <string>
#include <vector>

#include "lab/bench/figures.hpp"
#include "lab/bench/worlds.hpp"

namespace zerolab::bench {

/// Quick: the smallest thing that runs the code, so that it cannot rot; its figures mean nothing.
struct Effort {
  bool quick = false;

  int rounds(int wanted) const { return quick ? 2 : wanted; }
  std::string model(const std::string& wanted) const { return quick ? "gpt-nano" : wanted; }
};

// Every topic gives the lines of its table. Those that take worlds are run by every rank; rank 0's
// lines count.

/// CpuDevice's products against oneDNN alone, for the layers of gpt-mini and gpt2.
std::vector<Figure> products(Effort effort);
/// Every stage against stage 0 and against fewer ranks, gpt-mini.
std::vector<Figure> stages(Worlds& worlds, Effort effort);
/// bf16 and fp16 against fp32: products, and steps of gpt-mini.
std::vector<Figure> precision(Worlds& worlds, Effort effort);
/// Our collectives against MPI's own non-blocking ones. Under mpirun only.
std::vector<Figure> collectives(Worlds& worlds, Effort effort);
/// How much of a slow link's time stage 3 hides behind compute, at 2 ranks.
std::vector<Figure> overlap(Worlds& worlds, Effort effort);
/// A step that writes its log against one that does not, at 2 ranks.
std::vector<Figure> recording(Worlds& worlds, Effort effort);
/// A save, loading and a merge against write, fsync and read of as many bytes, at 2 ranks.
std::vector<Figure> checkpoint(Worlds& worlds, Effort effort);
/// What a step is made of, by device call, at 1 and at 2 ranks.
std::vector<Figure> profile(Worlds& worlds, Effort effort);
/// Resident memory of a process against the ledger's peak. Forks, so nothing may run beside it.
std::vector<Figure> memory(Effort effort);
/// From the shell's return key to the prompt: `zerolab train --steps 1` on 2 ranks.
std::vector<Figure> start_up(Effort effort);

}  // namespace zerolab::bench
