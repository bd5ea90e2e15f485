#include "lab/merge.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "lab/byte_size.hpp"
#include "lab/progress.hpp"
#include "lab/table.hpp"
#include "lab/terminal.hpp"
#include "stages/base/error.hpp"
#include "stages/base/nearest.hpp"
#include "stages/checkpoint/merge.hpp"
#include "stages/memory/usage.hpp"

namespace zerolab {
namespace {

using Json = nlohmann::ordered_json;

struct Flags {
  std::string checkpoint, file, dtype = "fp32", memory;
  bool json = false, plain = false;
};

Dtype dtype_in(const std::string& text) {
  std::vector<std::string> names;
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    if (text == name_of(dtype)) return dtype;
    names.emplace_back(name_of(dtype));
  }
  throw Error(Code::usage,
              fmt::format("--dtype {} is not known{}", text, did_you_mean(text, names)),
              "one of: fp32, bf16, fp16");
}

Json to_json(const MergeReport& report, const Checkpoint& checkpoint, const Flags& flags) {
  return {{"file", flags.file},          {"checkpoint", checkpoint.folder().string()},
          {"dtype", flags.dtype},        {"tensors", report.parameters},
          {"elements", report.elements}, {"tied", checkpoint.manifest().tied},
          {"bytes", report.bytes},       {"bytes_read", report.bytes_read},
          {"seconds", report.seconds}};
}

std::string text_of(const MergeReport& report, const Checkpoint& checkpoint, const Flags& flags) {
  std::string text =
      fmt::format("{}: {} tensors, {} elements of {}, {}\n", flags.file, report.parameters,
                  thousands(report.elements), flags.dtype, human_bytes(report.bytes));
  for (const auto& [alias, name] : checkpoint.manifest().tied) {
    text += fmt::format("'{}' is '{}' under a second name, and is in the file once\n", alias, name);
  }
  return text + fmt::format("{} read of the {} in {}, in {}\n", human_bytes(report.bytes_read),
                            human_bytes(checkpoint.bytes()), checkpoint.folder().string(),
                            human_seconds(report.seconds));
}

int run_merge(const Flags& flags) {
  MergeOptions options{.dtype = dtype_in(flags.dtype)};
  if (!flags.memory.empty()) options.max_memory = parse_byte_size(flags.memory, "--max-memory");
  const Checkpoint checkpoint = Checkpoint::open(flags.checkpoint);
  const Style style = choose_style(flags.plain, output_is_terminal());
  ProgressLine line(std::cout, output_is_terminal() && !flags.json, "merge");
  options.on_progress = [&](Index done, Index all) { line.show_bytes(done, all, style); };
  const MergeReport report = merge_checkpoint(checkpoint, flags.file, options);
  line.clear();
  if (flags.json) {
    std::cout << to_json(report, checkpoint, flags).dump(2) << std::endl;
  } else {
    std::cout << text_of(report, checkpoint, flags) << std::flush;
  }
  return 0;
}

}  // namespace

Subcommand merge_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    const auto flags = std::make_shared<Flags>();
    app.add_option("CHECKPOINT", flags->checkpoint,
                   "A folder of checkpoints, whose latest is meant, or FOLDER:TAG")
        ->required();
    app.add_option("-o,--output", flags->file, "The safetensors file to write")
        ->required()
        ->type_name("FILE");
    app.add_option("--dtype", flags->dtype, "What the weights become: fp32, bf16, fp16")
        ->type_name("TYPE")
        ->capture_default_str();
    app.add_option("--max-memory", flags->memory, "What it may hold of the weights (256MiB)")
        ->type_name("SIZE");
    app.add_flag("--json", flags->json, "Print the result as JSON, and nothing else");
    app.add_flag("--plain", flags->plain, "Print in ASCII");
    return [flags] { return run_merge(*flags); };
  };
  return {"merge", "Write a checkpoint's weights into one safetensors file", declare, false};
}

}  // namespace zerolab
