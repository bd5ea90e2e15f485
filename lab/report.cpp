#include "lab/report.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "lab/generated_text.hpp"
#include "lab/output_file.hpp"
#include "stages/base/error.hpp"
#include "visualize/report/data.hpp"
#include "visualize/report/page.hpp"
#include "visualize/trace/chrome_trace.hpp"

namespace zerolab {
namespace {

struct Wanted {
  std::vector<std::string> folders;
  std::optional<std::string> out;
  bool trace = false;
};

int write_trace(const Wanted& wanted) {
  std::vector<std::filesystem::path> runs;
  for (const std::string& folder : wanted.folders) {
    for (std::filesystem::path& run : log::runs_in(folder)) runs.push_back(std::move(run));
  }
  if (runs.size() > 1) {
    throw Error(
        Code::usage,
        printable(fmt::format("report --trace shows one run, and {} has {}",
                              wanted.folders.size() == 1 ? wanted.folders[0] : "the command line",
                              runs.size())),
        printable(fmt::format("name one of them, as {}", runs.back().string())));
  }
  std::ostringstream trace;
  for (const std::string& remark :
       trace::write_chrome_trace(log::read_run_folder(runs[0]), trace)) {
    std::cerr << printable(fmt::format("note: {}\n", remark));
  }
  const std::string out = wanted.out.value_or("trace.json");
  write_output(out, trace.str());
  std::cout << printable(fmt::format("{}: open it at https://ui.perfetto.dev\n", out));
  return 0;
}

int write_page(const Wanted& wanted) {
  const std::string out = wanted.out.value_or("report.html");
  write_output(
      out, report::html_page(report::page_data({wanted.folders.begin(), wanted.folders.end()})));
  std::cout << printable(fmt::format("{}: open it in a browser\n", out));
  return 0;
}

int run_report(const Wanted& wanted) {
  try {
    return wanted.trace ? write_trace(wanted) : write_page(wanted);
  } catch (const log::Unreadable& unreadable) {
    throw Error(Code::run_folder, printable(unreadable.what()), unreadable.way_out);
  }
}

}  // namespace

Subcommand report_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    const auto wanted = std::make_shared<Wanted>();
    app.add_option("RUN", wanted->folders, "Run folders, of train or compare")->required();
    app.add_flag("--trace", wanted->trace, "A trace for Perfetto or chrome://tracing instead");
    app.add_option("-o", wanted->out, "Where to; report.html or trace.json without it")
        ->type_name("FILE");
    return [wanted] { return run_report(*wanted); };
  };
  return {"report", "Make one page of what runs did: memory, time, states, traffic", declare,
          false};
}

}  // namespace zerolab
