#include "stages/base/error.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace zerolab {
namespace {

constexpr std::array kCodes{
    CodeInfo{Code::internal, "internal error"},
    CodeInfo{Code::clinic, "a failure is not as documented"},
    CodeInfo{Code::usage, "wrong use of the command line"},
    CodeInfo{Code::config_value, "a setting has a value it cannot have"},
    CodeInfo{Code::config_syntax, "a configuration file is not valid JSON"},
    CodeInfo{Code::config_unknown_key, "an unknown setting"},
    CodeInfo{Code::config_contradiction, "two settings contradict each other"},
    CodeInfo{Code::config_unsupported, "a setting of DeepSpeed that zerolab does not have"},
    CodeInfo{Code::data, "the training text cannot be used"},
    CodeInfo{Code::output_folder, "the run folder cannot be used"},
    CodeInfo{Code::model_description, "the model description cannot be used"},
    CodeInfo{Code::ranks_disagree, "the ranks were started with different arguments or data"},
    CodeInfo{Code::run_folder, "a run folder cannot be read"},
    CodeInfo{Code::clinic_page, "a page of the failure clinic cannot be followed"},
    CodeInfo{Code::out_of_memory, "a memory pool went over its budget"},
    CodeInfo{Code::parameter_not_available, "a parameter was used while it is not gathered"},
    CodeInfo{Code::illegal_move, "a parameter state transition that is not in the table"},
    CodeInfo{Code::released_while_active, "a parameter was released while in use"},
    CodeInfo{Code::left_gathered, "a parameter was left gathered or in flight"},
    CodeInfo{Code::gradient_state, "a gradient was produced or reduced out of turn"},
    CodeInfo{Code::released_in_flight,
             "a parameter was released while its all-gather was on its way"},
    CodeInfo{Code::fetched_twice,
             "a parameter was gathered again while it was whole or on its way"},
    CodeInfo{Code::waited_without_gather, "a parameter was waited for that nobody gathers"},
    CodeInfo{Code::use_count, "a module ended its use of a parameter that it had not begun"},
    CodeInfo{Code::bucket_state, "a reduce bucket was read or written out of turn"},
    CodeInfo{Code::held_by_scope, "a gather scope holds a parameter that something else wants"},
    CodeInfo{Code::edit_without_owner, "a gathered parameter was written without naming an owner"},
    CodeInfo{Code::log_states, "a log shows states or bytes that cannot be"},
    CodeInfo{Code::not_bit_identical, "stages differ where the same bits are promised"},
    CodeInfo{Code::not_finite, "the loss or the gradient norm is not finite"},
    CodeInfo{Code::replicas_differ, "copies of a parameter differ between ranks"},
    CodeInfo{Code::loss_scale_at_minimum, "gradients overflow at the least loss scale"},
    CodeInfo{Code::checkpoint_write, "a checkpoint cannot be written"},
    CodeInfo{Code::checkpoint_missing, "there is no such checkpoint"},
    CodeInfo{Code::checkpoint_damaged, "a checkpoint is damaged"},
    CodeInfo{Code::checkpoint_mismatch, "a checkpoint is of something else"},
    CodeInfo{Code::not_gathered_on_save, "stage 3 has no whole weights to save"},
    CodeInfo{Code::checkpoint_tags, "the ranks would save under different tags"},
    CodeInfo{Code::communication, "the communication layer failed"},
    CodeInfo{Code::mpi_singletons, "mpirun started several processes, MPI sees one"},
    CodeInfo{Code::peer_failed, "another rank failed"},
    CodeInfo{Code::mpi_thread_level, "MPI does not offer the thread level needed"},
    CodeInfo{Code::comm_timeout, "a collective did not finish in time"},
    CodeInfo{Code::collective_mismatch, "the ranks do not call the same collective"},
    CodeInfo{Code::module_order, "the ranks run different modules"},
    CodeInfo{Code::log_collectives, "a log shows collectives that do not match"},
    CodeInfo{Code::interrupted, "interrupted from the keyboard"},
    CodeInfo{Code::terminated, "told to end"},
};

}  // namespace

std::span<const CodeInfo> all_codes() { return kCodes; }

std::string code_name(Code code) { return fmt::format("ZL{}", static_cast<int>(code)); }

Error::Error(Code code, std::string what_happened, std::string way_out)
    : std::runtime_error(way_out.empty() ? fmt::format("{}: {}", code_name(code), what_happened)
                                         : fmt::format("{}: {}\n  way out: {}", code_name(code),
                                                       what_happened, way_out)),
      code_(code),
      what_happened_(std::move(what_happened)),
      way_out_(std::move(way_out)) {}

nlohmann::ordered_json Error::details() const { return nullptr; }

}  // namespace zerolab
