#include "lab/subcommands.hpp"

#include "lab/doctor.hpp"
#include "lab/explain.hpp"
#include "lab/failures/fail.hpp"
#include "lab/verify.hpp"

namespace zerolab {

std::vector<Subcommand> subcommands_without_ranks() {
  return {doctor_subcommand(), explain_subcommand(), fail_subcommand(), verify_subcommand()};
}

}  // namespace zerolab
