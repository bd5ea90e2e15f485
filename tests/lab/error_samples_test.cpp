// The sample messages in docs/errors.md are what zerolab really says: each is provoked.
#include "tests/support/error_samples.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <new>
#include <regex>

#include "lab/compare_result.hpp"
#include "lab/failures/failure.hpp"
#include "lab/failures/mistakes/mistake.hpp"
#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "lab/options.hpp"
#include "lab/run.hpp"
#include "lab/run_folder.hpp"
#include "lab/temporary_folder.hpp"
#include "stages/checkpoint/consolidate.hpp"
#include "stages/comm/agreement.hpp"
#include "stages/comm/checked_communicator.hpp"
#include "stages/comm/job.hpp"
#include "stages/ddp/ddp.hpp"
#include "stages/device/cpu/cpu_device.hpp"
#include "stages/engine/byte_data.hpp"
#include "stages/engine/gathered_parameters.hpp"
#include "stages/engine/reduce_bucket.hpp"
#include "stages/model/layers.hpp"
#include "stages/stages.hpp"
#include "stages/zero3/module_order.hpp"
#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chain.hpp"
#include "tests/support/layer_harness.hpp"
#include "tests/support/run_ranks.hpp"
#include "tests/support/saved.hpp"
#include "tests/support/scripted.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/trainings.hpp"

namespace zerolab::test {
namespace {

/// What is not provoked here.
constexpr std::array kElsewhere{
    Code::clinic,            // tests/cli/clinic_test.cpp: it takes a program to run
    Code::mpi_singletons,    // tests/cli/bad_input_test.cpp: it takes a process of its own
    Code::mpi_thread_level,  // it takes an MPI without threads
    Code::log_states,        // tests/cli/verify_test.cpp: what is wrong is printed first
    Code::log_collectives,   // the same
    Code::comm_timeout,      // tests/cli/failures_test.cpp: a thread that sleeps cannot be ended
    Code::interrupted,       // tests/cli/signals_test.cpp
    Code::terminated,        // the same
};

void stranger_in_a_job() {
  std::optional<Error> reported;
  run_threads(1, [&](int) {
    RankProgram program;
    program.body = [](Communicator&) { throw std::bad_alloc(); };
    program.report = [&](const Communicator&, const Error& error) { reported = error; };
    return program;
  });
  if (reported) throw Error(*reported);
}

void resolve_file(const std::string& text) {
  ResolveInput input = config(text);
  input.file->name = "ds_config.json";
  resolve(input);
}

void contradict() {
  ResolveInput input = config(R"({"train_batch_size": 16, "gradient_accumulation_steps": 1})");
  input.file->name = "ds_config.json";
  input.flags = {{"train_micro_batch_size_per_gpu", 2, "--micro-batch"}};
  resolve(input);
}

void short_text() {
  Text text;
  text.origin = "tiny.txt";
  text.bytes.assign(100, 'a');
  ByteData(text, 1).check_fits(64, 256);
}

void page_without_cause() {
  const TemporaryFolder folder;
  const auto page = folder.write("my-failure.md", "# T\n\nAbout.\n\n## Symptom\n\nS.\n");
  try {
    read_failure(page);
  } catch (const Error& error) {  // without where temporary folders are here
    throw Error(error.code(), "my-failure.md has no section 'Cause'", error.way_out());
  }
}

void foreign_folder() {
  const TemporaryFolder folder;
  folder.write("results/thesis.tex", "precious");
  try {
    prepare_run_folder(folder.path() / "results");
  } catch (const Error& error) {  // without where temporary folders are here
    std::string what = error.what_happened();
    what.erase(0, what.find("results"));
    throw Error(error.code(), what, error.way_out());
  }
}

void small_budget() {
  Recorder recorder(0);
  Ledger ledger("device", recorder, Index{1} << 20);
  const Buffer parameters = ledger.allocate(682'240, Category::parameters, "parameters");
  ledger.allocate(682'240, Category::gradients, "gradients");
}

void unregistered_head() {
  Training training = training_of(tiny_transformer(), 3);
  find_mistake("unregistered-head", "--break").make(training, 0);
  run(2, training);
}

/// Moves a parameter that no rank has whole, by these causes, to these states.
void move(int rank, const std::vector<std::pair<Status, Cause>>& moves) {
  Parameter parameter{"head.weight", 0, {7}, Initial::zeros()};
  Recorder recorder(rank);
  for (const auto& [to, cause] : moves) {
    ParameterState::move(parameter, to, cause, "head", recorder);
  }
}

void end_use_too_often() {
  Parameter parameter{"head.weight", 0, {7}, Initial::zeros()};
  ParameterState::end_use(parameter, "head", Recorder(0));
}

/// Everything a rank alone needs to communicate.
struct Rank {
  explicit Rank(Communicator& communicator)
      : recorder(communicator.rank()),
        ledger("device", recorder),
        device(ledger),
        comm(communicator, device, ledger, recorder) {}

  Recorder recorder;
  Ledger ledger;
  CpuDevice device;
  CommStream comm;
};

void fill_while_reducing() {
  run_ranks(1, [](Communicator& communicator) {
    Rank rank(communicator);
    const Settings settings;
    Runtime runtime{rank.device, rank.ledger, rank.recorder, rank.comm, settings};
    Parameter parameter{"head.weight", 0, {7}, Initial::zeros()};
    ReduceBucket bucket(runtime, 1);
    std::vector<float> gradient(7);
    bucket.add({&parameter, gradient.data(), 7}, 7);
    bucket.close();
    bucket.start({});
    bucket.add({&parameter, gradient.data(), 7}, 7);
  });
}

void write_in_a_scope_for_reading() {
  run_ranks(2, [](Communicator& communicator) {
    Rank rank(communicator);
    const Settings settings;
    Runtime runtime{rank.device, rank.ledger, rank.recorder, rank.comm, settings};
    Ddp stage(runtime);
    float value = 0;
    Parameter parameter{"head.weight", 0, {1}, Initial::zeros()};
    parameter.data = &value;
    GatheredParameters scope(runtime, stage, {&parameter});
    if (communicator.rank() == 1) value = 1;
  });
}

void other_modules() {
  run_ranks(2, [](Communicator& communicator) {
    Rank rank(communicator);
    const ChainModule first("layers.0", {});
    const ChainModule one("layers.1", {});
    const ChainModule other("layers.2", {});
    ModuleNumbers numbers;
    std::vector<Stop> order;
    for (const Module* module : {&first, &first, communicator.rank() == 0 ? &one : &other}) {
      order.push_back({numbers.of(*module), VisitKind::forward, {}});
    }
    check_same_order(rank.comm, order, numbers);
  });
}

void release_in_use() {
  Parameter parameter{"head.weight", 0, {7}, Initial::zeros()};
  Recorder recorder(0);
  ParameterState::move(parameter, Status::available, Cause::set_up, "", recorder);
  ParameterState::begin_use(parameter);
  ParameterState::move(parameter, Status::not_available, Cause::release, "head", recorder);
}

class NeverReleases : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void release(const Visit& /*visit*/) override {}
};

void keep_gathered() { run(2, with_stage<NeverReleases>(training_of(tiny_mlp(), 3))); }

void gradient_too_many() {
  LayerHarness harness;
  ParameterSet parameters;
  Linear head(parameters, "head", 2, 2, Initial::zeros());
  harness.attach(head);
  harness.provide(parameters);
  harness.begin_micro_step(parameters);
  head.forward(harness.tensor({1, 2}, Floats{1, 2}));
  for (Parameter& parameter : parameters) parameter.uses = 0;
  harness.begin_backward();
  head.backward(harness.tensor({1, 2}, Floats{1, 2}));
}

void other_bits() {
  CompareResult result;
  for (const double loss : {5.5467, 5.546700000000001}) {
    StageResult stage;
    stage.stage = result.stages.empty() ? 0 : 2;
    stage.loss = {6, 5.75, loss};
    stage.grad_norm = {1, 1, 1};
    stage.param_hash = {1, 2, 3};
    result.stages.push_back(stage);
  }
  throw Error(Code::not_bit_identical, judge(result).first_difference, "");
}

void diverge() {
  Training training = training_of(tiny_mlp(), 0);
  training.settings.optimizer.learning_rate = 1e30F;
  run(1, training);
}

void overflow_for_ever() {
  Training training = training_of_script(
      {{3}}, [](Index, const Moment&) { return std::numeric_limits<float>::infinity(); }, 0);
  training.settings.dtype = Dtype::fp16;
  training.settings.loss_scale.initial_scale_power = 1;
  run(1, training);
}

void write_one_copy() {
  Training training = training_of_odd_sizes(0);
  training.settings.zero.enable_sanity_checks = true;
  training.prepare = [](Runtime& runtime, Engine& engine) {
    if (runtime.rank() > 0) engine.model().parameters().at("head.weight").data[0] += 1;
  };
  run(3, training);
}

void other_sizes() {
  run_ranks(2, [](Communicator& communicator) {
    std::vector<std::byte> bytes(communicator.rank() == 0 ? std::size_t{4096} : 2048);
    Exchange round;
    if (communicator.rank() == 0) {
      round.receives.push_back({1, bytes});
    } else {
      round.sends.push_back({0, bytes});
    }
    communicator.exchange(round);
  });
}

void other_seeds() {
  run_ranks(3, [](Communicator& communicator) {
    agree(communicator, {{"--seed", communicator.rank() == 2 ? 7 : 1}});
  });
}

void other_collectives() {
  std::optional<Error> reported;
  run_threads(2, [&](int) {
    RankProgram program;
    program.body = [](Communicator& communicator) {
      CheckedCommunicator checked(communicator);
      Exchange round;
      round.signature = {.sequence = 18, .op = Op::all_gather, .elements = 64};
      round.signature.owner = communicator.rank() == 0 ? "first.weight" : "second.weight";
      round.signature.where = "step 2, micro-step 0, forward of 'first'";
      round.signature.dtype = Dtype::fp32;
      round.label = fingerprint(round.signature);
      checked.exchange(round);
    };
    program.report = [&](const Communicator&, const Error& error) { reported = error; };
    return program;
  });
  if (reported) throw Error(*reported);
}

/// What an action says, without where temporary folders are here.
void without_path_of(const TemporaryFolder& folder, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string where = folder.path().string() + "/";
    throw Error(error.code(), std::regex_replace(error.what_happened(), std::regex(where), ""),
                error.way_out());
  }
}

/// The same with ck:global_step4 in the folder.
void with_checkpoint(const std::function<void(const std::filesystem::path& folder)>& action) {
  const TemporaryFolder folder;
  Training training = training_of(tiny_mlp(), 1);
  training.steps = 4;
  run(2, saving(training, folder.path() / "ck", {4}));
  without_path_of(folder, [&] { action(folder.path()); });
}

void save_into_a_file() {
  const TemporaryFolder folder;
  const auto file = folder.write("ck", "");
  without_path_of(folder, [&] {
    run_ranks(2, [&](Communicator& communicator) {
      Rank rank(communicator);
      prepare_to_save(rank.comm, file);
    });
  });
}

void resume_from_no_checkpoint() {
  with_checkpoint([](const std::filesystem::path& folder) {
    Checkpoint::open((folder / "ck:global_step5").string());
  });
}

void resume_from_a_shard_too_short() {
  with_checkpoint([](const std::filesystem::path& folder) {
    const auto shard = folder / "ck/global_step4/rank1.safetensors";
    std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
    Checkpoint::open((folder / "ck").string());
  });
}

void resume_another_model() {
  const TemporaryFolder folder;
  RunOptions options = parse_command_line({"train", "--model", "mlp-small"}, false).options;
  const Plan plan = make_plan(options, "", 1);
  const Effective effective = settings_for(plan, std::nullopt);
  Training training = training_for(plan, effective, 0);
  training.steps = 2;
  training.validation = {};
  training.after_step = [&](Runtime& runtime, Engine& engine) {
    save_checkpoint(runtime, engine,
                    {.folder = folder.path() / "ck", .run = run_for_checkpoint(plan, effective)});
  };
  run(1, training);
  options.model = "gpt-nano";
  options.resume = (folder.path() / "ck").string();
  without_path_of(folder, [&] { make_plan(options, "", 1); });
}

void save_whole_weights_of_stage_3() {
  Settings settings;
  settings.zero.stage = 3;
  expect_may_consolidate(settings);
}

void save_under_own_tags() {
  const TemporaryFolder folder;
  Training training = training_of(tiny_mlp(), 2);
  training.settings.tag_validation = TagValidation::fail;
  training.after_step = [&](Runtime& runtime, Engine& engine) {
    find_mistake("own-tag", "--break").save(runtime, engine, {.folder = folder.path()});
  };
  run(3, training);
}

const std::map<Code, std::function<void()>>& provocations() {
  using enum Status;
  static const std::map<Code, std::function<void()>> all{
      {Code::internal, stranger_in_a_job},
      {Code::usage,
       [] {
         parse_command_line({"train", "--stpes", "5"}, false);
       }},
      {Code::config_value,
       [] { resolve_file(R"({"zero_optimization": {"reduce_bucket_size": "5e8"}})"); }},
      {Code::config_syntax, [] { resolve_file("{\n  \"a\": 1,\n  \"b\" 2\n}\n"); }},
      {Code::config_unknown_key,
       [] { resolve_file(R"({"zero_optimization": {"reduce_bukcet_size": 5}})"); }},
      {Code::config_contradiction, contradict},
      {Code::config_unsupported, [] { resolve_file(R"({"amp": {"enabled": true}})"); }},
      {Code::clinic_page, page_without_cause},
      {Code::data, short_text},
      {Code::output_folder, foreign_folder},
      {Code::model_description,
       [] {
         parse_model(R"({"type": "transformer", "vocab_size": 256, "sequence_length": 8,
                         "num_layers": 1, "num_heads": 4, "hidden_size": 30})",
                     "tiny.json");
       }},
      {Code::ranks_disagree, other_seeds},
      {Code::run_folder,
       [] {
         parse_command_line({"verify", "results"}, false).alone();
       }},
      {Code::out_of_memory, small_budget},
      {Code::parameter_not_available, unregistered_head},
      {Code::illegal_move,
       [] {
         move(2, {{not_available, Cause::release}});
       }},
      {Code::released_in_flight,
       [] {
         move(2, {{inflight, Cause::fetch}, {not_available, Cause::release}});
       }},
      {Code::fetched_twice,
       [] {
         move(0, {{available, Cause::set_up}, {inflight, Cause::fetch}});
       }},
      {Code::waited_without_gather,
       [] {
         move(0, {{available, Cause::fetch}});
       }},
      {Code::use_count, end_use_too_often},
      {Code::bucket_state, fill_while_reducing},
      {Code::held_by_scope,
       [] {
         Parameter parameter{"head.weight", 0, {7}, Initial::zeros()};
         ParameterState::begin_scope(parameter, Recorder(0));
         ParameterState::begin_scope(parameter, Recorder(0));
       }},
      {Code::edit_without_owner, write_in_a_scope_for_reading},
      {Code::module_order, other_modules},
      {Code::released_while_active, release_in_use},
      {Code::left_gathered, keep_gathered},
      {Code::gradient_state, gradient_too_many},
      {Code::not_bit_identical, other_bits},
      {Code::not_finite, diverge},
      {Code::replicas_differ, write_one_copy},
      {Code::loss_scale_at_minimum, overflow_for_ever},
      {Code::checkpoint_write, save_into_a_file},
      {Code::checkpoint_missing, resume_from_no_checkpoint},
      {Code::checkpoint_damaged, resume_from_a_shard_too_short},
      {Code::checkpoint_mismatch, resume_another_model},
      {Code::not_gathered_on_save, save_whole_weights_of_stage_3},
      {Code::checkpoint_tags, save_under_own_tags},
      {Code::communication, other_sizes},
      {Code::collective_mismatch, other_collectives},
      {Code::peer_failed, [] { throw PeerFailed(2); }},
  };
  return all;
}

TEST_CASE("the sample messages in docs/errors.md are what zerolab says", "[lab][docs]") {
  for (const auto& [code, provoke] : provocations()) {
    INFO(code_name(code));
    const auto error = thrown_by(provoke);
    REQUIRE(error);
    CHECK(error->code() == code);
    const std::string message = code_name(code) + ": " + error->what_happened();
    INFO("it says:  " << message);
    INFO("the guide: " << sample_of(code));
    CHECK(reads_like(message, sample_of(code)));
  }
}

TEST_CASE("no code is without a check of its sample, or a reason", "[lab][docs]") {
  for (const CodeInfo& info : all_codes()) {
    if (std::count(kElsewhere.begin(), kElsewhere.end(), info.code) > 0) continue;
    INFO(code_name(info.code));
    CHECK(provocations().count(info.code) == 1);
  }
}

TEST_CASE("a message reads like a sample up to numbers, quoted names and line breaks",
          "[lab][docs]") {
  CHECK(reads_like("rank 2: 'b' has 5.25e-3\n  bytes", "rank 17: 'a' has 8 bytes"));
  CHECK(reads_like("the loss is inf", "the loss is 1.5"));
  CHECK(reads_like("one line\nand more", "one line ..."));
  CHECK_FALSE(reads_like("one line", "one line more"));
  CHECK_FALSE(reads_like("one line more", "one line"));
  CHECK_FALSE(reads_like("another line", "one ..."));
}

}  // namespace
}  // namespace zerolab::test
