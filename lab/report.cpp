#include "lab/report.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <memory>

#include "lab/generated_text.hpp"
#include "stages/base/error.hpp"
#include "visualize/log/run_folder.hpp"
#include "visualize/report/data.hpp"
#include "visualize/report/page.hpp"

namespace zerolab {
namespace {

void write_page(const std::filesystem::path& file, const std::string& page) {
  std::ofstream out(file, std::ios::binary);
  out << page << std::flush;
  if (out) return;
  throw Error(Code::output_folder, printable(fmt::format("cannot write '{}'", file.string())),
              "name a file that may be written with -o");
}

int run_report(const std::vector<std::string>& folders, const std::string& output) {
  std::string page;
  try {
    page = report::html_page(report::page_data({folders.begin(), folders.end()}));
  } catch (const log::Unreadable& unreadable) {
    throw Error(Code::run_folder, printable(unreadable.what()), unreadable.way_out);
  }
  write_page(output, page);
  std::cout << printable(fmt::format("report: {}\n", output)) << std::flush;
  return 0;
}

}  // namespace

Subcommand report_subcommand() {
  const auto declare = [](CLI::App& app) -> std::function<int()> {
    struct Flags {
      std::vector<std::string> folders;
      std::string output = "report.html";
    };
    const auto flags = std::make_shared<Flags>();
    app.add_option("RUN", flags->folders, "Run folders, of train or compare")->required();
    app.add_option("-o,--output", flags->output, "The file that is written")
        ->option_text("FILE")
        ->capture_default_str();
    return [flags] { return run_report(flags->folders, flags->output); };
  };
  return {"report", "Make one HTML page of what runs did: memory, time, states, traffic", declare,
          false};
}

}  // namespace zerolab
