// The page that carries a report.
#include "visualize/report/page.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/reported.hpp"

namespace zerolab::test {
namespace {

using Json = nlohmann::ordered_json;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++times;
  }
  return times;
}

/// The data in a page, as a browser gets it: what stands until the element ends.
Json embedded(const std::string& page) {
  const std::string begin = R"(id="data">)";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script", from) - from));
}

}  // namespace

TEST_CASE("the data in a page is the data of the report", "[report]") {
  const Json data = page_data_of(reported_run(3));
  CHECK(embedded(report::html_page(data)) == data);
}

TEST_CASE("a page has every script, closes each once, and names no address", "[report]") {
  const std::string page = report::html_page(page_data_of(reported_run(1)));
  for (const char* place : {"/*STYLE*/", "/*DATA*/", "/*D3*/", "/*SCRIPTS*/"}) {
    CHECK(count(page, place) == 0);
  }
  CHECK(count(page, "<script") == 3);
  CHECK(count(page, "</script") == 3);
  CHECK(count(page, "function memorySection") == 1);
  CHECK(count(page, "d3js.org") > 0);  // D3 is there
  for (const char* loads : {" src=", "@import", "url(http", "fetch(", "XMLHttpRequest"}) {
    INFO(loads);
    const std::string own = page.substr(0, page.find("// https://d3js.org")) +
                            page.substr(page.find("const page = JSON.parse"));
    CHECK(count(own, loads) == 0);
  }
  CHECK(count(page, "Content-Security-Policy\" content=\"default-src 'none';") == 1);
}

TEST_CASE("hostile names in a log end neither the data of a page nor the page", "[report]") {
  LoggedRun run = reported_run(3);
  const std::string name =
      "</script><script>alert(1)</script><!-- \" ' \n \xff" + std::string(10'000, 'x');
  for (auto& lines : run.logs) {
    for (std::string& line : lines) {
      auto event = Json::parse(line);
      for (const char* field : {"owner", "module"}) {
        if (event.contains(field)) event[field] = name;
      }
      line = event.dump(-1, ' ', false, Json::error_handler_t::replace);
    }
  }
  run.run["command"] = name.substr(0, 60) + "</SCRIPT>";
  run.run["command"] =
      Json::parse(run.run["command"].dump(-1, ' ', false, Json::error_handler_t::replace));
  const std::string page = report::html_page(page_data_of(run));
  CHECK(count(page, "<script") == 3);
  CHECK(count(page, "</script") == 3);
  CHECK(count(page, "</SCRIPT") == 0);
  CHECK(count(page, "<!--") == 0);
  CHECK(page.size() < 2'000'000);
  bool kept = false;
  const Json data = embedded(page);
  for (const Json& each : data["names"]) {
    CHECK(each.get<std::string>().size() < 200);
    kept = kept || each.get<std::string>().find("</script><script>alert(1)") == 0;
  }
  CHECK(kept);  // it is shown as what it is
}

}  // namespace zerolab::test
