#include "lab/subcommands.hpp"

#include "lab/checkpoint_command.hpp"
#include "lab/diagram.hpp"
#include "lab/doctor.hpp"
#include "lab/explain.hpp"
#include "lab/failures/fail.hpp"
#include "lab/merge.hpp"
#include "lab/report.hpp"
#include "lab/verify.hpp"

namespace zerolab {

std::vector<Subcommand> subcommands_without_ranks() {
  return {doctor_subcommand(),     explain_subcommand(), fail_subcommand(),   merge_subcommand(),
          checkpoint_subcommand(), verify_subcommand(),  report_subcommand(), diagram_subcommand()};
}

}  // namespace zerolab
