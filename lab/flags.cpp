#include "lab/flags.hpp"

#include <fmt/format.h>

namespace zerolab {
namespace {

// CLI11 prints options by group; those added since the last call get this one.
void name_group(CLI::App& app, const std::string& name) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group() == "Options" && option != app.get_help_ptr()) option->group(name);
  }
}

CLI::Validator whole_number(Index least, Index most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        const bool digits = !text.empty() && text.size() < 19 &&
                            text.find_first_not_of("0123456789") == std::string::npos;
        if (digits && std::stoll(text) >= least && std::stoll(text) <= most) return {};
        return fmt::format("{} is not a whole number from {} to {}", text, least, most);
      },
      "", "");
}

void add_what_to_train(CLI::App& app, RawFlags& raw) {
  RunOptions& options = raw.options;
  app.add_option("--model", options.model,
                 fmt::format("mlp-small, gpt-nano, gpt-mini, gpt2, or a JSON file that describes a "
                             "model [{}]",
                             kDefaultModel))
      ->type_name("NAME");
  app.add_option("--data", raw.data, "What to learn from [the licence texts of the system]")
      ->type_name("FILE|FOLDER");
  app.add_option("--steps", options.steps, "Optimizer steps, with those before a checkpoint")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--seed", options.seed,
                 fmt::format("Of initial weights and batches [{}]", kDefaultSeed))
      ->check(whole_number(0, 999'999'999'999'999'999))
      ->type_name("NUMBER");
  app.add_option("--validate-every", options.validate_every,
                 "Steps between validations; 0: after the last step only")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("STEPS")
      ->capture_default_str();
  app.add_option("--freeze", options.frozen,
                 "Parameters that are not trained, or modules with all of theirs")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,NAME...");
  name_group(app, "What to train");
}

void add_stage(CLI::App& app, RawFlags& raw) {
  const bool generate = raw.options.command == Command::generate;
  app.add_option("--stage", raw.stage,
                 fmt::format("What is sharded: 0 nothing, 1 optimizer states, 2 gradients too, 3 "
                             "parameters too [{}]",
                             generate ? "that of the checkpoint" : "0"))
      ->type_name("K");
}

void add_settings(CLI::App& app, RawFlags& raw) {
  app.add_option("--config,--deepspeed_config", raw.config, "DeepSpeed-style settings, JSON")
      ->type_name("FILE");
  if (raw.options.command != Command::compare) {
    add_stage(app, raw);
  } else {
    app.add_option("--stages", raw.options.stages, "The stages to compare")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(whole_number(0, 3))
        ->type_name("K,K...")
        ->default_str("0,1,2,3");
  }
  app.add_option("--micro-batch", raw.micro_batch, "Sequences per rank and micro-step")
      ->type_name("COUNT");
  app.add_option("--gradient-accumulation-steps", raw.accumulation,
                 "Micro-steps per optimizer step")
      ->type_name("COUNT");
  app.add_option("--learning-rate", raw.learning_rate, "Of the optimizer")->type_name("NUMBER");
  app.add_flag("--bf16", raw.bf16, "16-bit weights, gradients and activations, fp32 masters");
  app.add_flag("--fp16", raw.fp16, "The same in fp16, with a loss scale");
  app.add_option("--reduce-bucket-size", raw.bucket, "Elements per gradient bucket")
      ->type_name("COUNT");
  app.add_option("--prefetch-bucket-size", raw.prefetch,
                 "Stage 3: elements gathered ahead of the module that reads them; 0: none")
      ->type_name("COUNT");
  app.add_option("--param-persistence-threshold", raw.persistence,
                 "Stage 3: parameters of at most so many elements stay whole")
      ->type_name("COUNT");
  app.add_option("--max-live-parameters", raw.live,
                 "Stage 3: elements whole beyond which nothing is prefetched")
      ->type_name("COUNT");
  app.add_option("--max-reuse-distance", raw.reuse,
                 "Stage 3: elements read until the next use, for a parameter to stay whole")
      ->type_name("COUNT");
  app.add_flag("--activation-checkpointing", raw.checkpointing,
               "Keep only the input of each block, and run it again in backward");
  app.add_flag("--overlap-comm", raw.overlap, "Communicate while compute goes on");
  app.add_flag("--no-overlap-comm", raw.no_overlap, "Do not");
  name_group(app, "Settings (a flag beats the file, the file the model's preset)");
}

void add_where_it_runs(CLI::App& app, RawFlags& raw) {
  app.add_option(
         "-n,--ranks", raw.ranks,
         fmt::format("Ranks, as threads of this process; not under mpirun [{}]", kDefaultRanks))
      ->check(whole_number(1, 1024))
      ->type_name("N");
  app.add_option("--threads", raw.options.threads, "Threads of each rank")
      ->check(whole_number(1, 1024))
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--device-memory", raw.memory,
                 "Budget of each rank, as 64MiB or 1GB; going over it is an error [unlimited]")
      ->type_name("SIZE");
  app.add_option("--link", raw.link,
                 "Emulate a network between the ranks: bandwidth=1GB/s,latency=20us, or one of the "
                 "two")
      ->type_name("LINK");
  app.add_option("--comm-timeout", raw.options.comm_timeout,
                 "Seconds until a rank that waits in vain for the others ends the run; 0: never")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("SECONDS")
      ->capture_default_str();
  app.add_flag("--check-collectives", raw.check_collectives,
               fmt::format("Before data moves, check that all ranks call the same collective{}",
                           kCheckCollectives ? " [on in this build]" : ""));
  app.add_flag("--no-check-collectives", raw.no_check_collectives, "Do not");
  name_group(app, "Where it runs");
}

void add_what_it_tells(CLI::App& app, RawFlags& raw) {
  RunOptions& options = raw.options;
  app.add_option("--out", options.out,
                 "The run folder; replaces an earlier run in it, and nothing else")
      ->type_name("FOLDER")
      ->capture_default_str();
  app.add_option("--log-level", raw.log_level, "off, steps, or events")
      ->check(CLI::IsMember({"off", "steps", "events"}).description(""))
      ->type_name("LEVEL")
      ->capture_default_str();
  app.add_option("--show", raw.show,
                 "Print transitions, comm, memory (comma between) as they happen")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"transitions", "comm", "memory"}).description(""))
      ->type_name("WHAT");
  app.add_flag("--json", options.json, "Print the result as JSON, and nothing else");
  app.add_flag("--plain", options.plain, "Print tables in ASCII");
  name_group(app, "What it tells");
}

void add_mistakes(CLI::App& app, RawFlags& raw) {
  app.add_option(
         "--break", raw.broken,
         "Make a deliberate mistake, such as unregistered-head; zerolab fail --list has them")
      ->type_name("MISTAKE");
  app.add_option("--mend", raw.mended,
                 "Run what a deliberate mistake is made in, without the mistake")
      ->type_name("MISTAKE");
  name_group(app, "What goes wrong");
}

void add_checkpoints(CLI::App& app, RawFlags& raw) {
  app.add_option("--save", raw.save, "Save a checkpoint into this folder after the last step")
      ->type_name("FOLDER");
  app.add_option("--save-every", raw.save_every, "And whenever so many steps are done")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("STEPS");
  app.add_option("--keep", raw.keep, "Remove all checkpoints but so many of the latest [all stay]")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("COUNT");
  if (raw.options.command == Command::train) {
    app.add_option(
           "--resume", raw.resume,
           "Go on from a checkpoint: its folder's latest, or one by its tag; auto: from the "
           "latest in --save, if there is one")
        ->type_name("FOLDER[:TAG]");
  }
  app.add_option("--save-model", raw.save_model,
                 "Write all weights into one safetensors file after the last step")
      ->type_name("FILE");
  name_group(app, "Checkpoints");
}

void add_sampling(CLI::App& app, RawFlags& raw) {
  app.add_option("--prompt", raw.prompt, "What the text begins with [a newline, not printed]")
      ->type_name("TEXT");
  app.add_option("--temperature", raw.temperature,
                 fmt::format("Below 1 the model dares less, above 1 more; 0: the most likely byte "
                             "every time [{}]",
                             Sampling{}.temperature))
      ->type_name("NUMBER");
  app.add_option("--top-k", raw.top_k,
                 "Draw from so many of the most likely bytes; 0: from all [0]")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("COUNT");
}

void add_what_it_writes(CLI::App& app, RawFlags& raw) {
  app.add_option("--generate", raw.generate, "Let the model write so many bytes of text")
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("BYTES");
  app.add_option("--generate-every", raw.generate_every,
                 "Steps between two texts; 0: after the last step only [0]")
      ->check(whole_number(0, 1'000'000'000))
      ->type_name("STEPS");
  add_sampling(app, raw);
  name_group(app, "What it writes");
}

/// `generate` trains nothing: it has the flags that matter for that.
void add_flags_of_generate(CLI::App& app, RawFlags& raw) {
  app.add_option("--resume", raw.resume,
                 "The checkpoint that has the weights: its folder's latest, or one by its tag")
      ->required()
      ->type_name("FOLDER[:TAG]");
  app.add_option("--bytes", raw.generate, fmt::format("How many to write [{}]", kDefaultBytes))
      ->check(whole_number(1, 1'000'000'000))
      ->type_name("BYTES");
  add_sampling(app, raw);
  app.add_option("--seed", raw.options.seed, "Of the draws [that of the training]")
      ->check(whole_number(0, 999'999'999'999'999'999))
      ->type_name("NUMBER");
  name_group(app, "What it writes");
  add_stage(app, raw);
  add_where_it_runs(app, raw);
  app.add_flag("--json", raw.options.json, "Print the text as JSON, and nothing else");
  app.add_flag("--plain", raw.options.plain, "Print in ASCII");
  name_group(app, "What it tells");
}

}  // namespace

void add_flags(CLI::App& app, RawFlags& raw) {
  if (raw.options.command == Command::generate) return add_flags_of_generate(app, raw);
  if (raw.options.command == Command::import) {
    app.add_option("FILE", raw.weights, "The weights, a safetensors file")->required();
  }
  add_what_to_train(app, raw);
  add_settings(app, raw);
  if (raw.options.command != Command::compare) {
    add_checkpoints(app, raw);
    add_what_it_writes(app, raw);
  }
  add_where_it_runs(app, raw);
  add_what_it_tells(app, raw);
  add_mistakes(app, raw);
}

}  // namespace zerolab
