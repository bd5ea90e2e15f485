#include "lab/subcommands.hpp"

#include "lab/doctor.hpp"

namespace zerolab {

std::vector<Subcommand> subcommands_without_ranks() { return {doctor_subcommand()}; }

}  // namespace zerolab
