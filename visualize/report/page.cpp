#include "visualize/report/page.hpp"

#include "visualize/report/assets.hpp"

namespace zerolab::report {
namespace {

/// JSON that may stand inside <script>: no `<` in it, so nothing in it ends the element.
std::string in_script(const nlohmann::ordered_json& data) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  const std::string text = data.dump(-1, ' ', false, Handler::replace);
  std::string result;
  result.reserve(text.size());
  for (const char each : text) {
    if (each == '<') {
      result += "\\u003c";
    } else {
      result += each;
    }
  }
  return result;
}

/// The text between two places of the template, of which `begin` moves behind the second.
std::string_view until(std::string_view page, std::string_view place, std::size_t& begin) {
  const std::size_t end = page.find(place, begin);
  const std::string_view part = page.substr(begin, end - begin);
  begin = end + place.size();
  return part;
}

}  // namespace

std::string html_page(const nlohmann::ordered_json& data) {
  const std::string_view page = page_template();
  std::string result;
  std::size_t begin = 0;
  result += until(page, "/*STYLE*/", begin);
  result += style();
  result += until(page, "/*DATA*/", begin);
  result += in_script(data);
  result += until(page, "/*D3*/", begin);
  result += d3();
  result += until(page, "/*SCRIPTS*/", begin);
  result += scripts();
  result += page.substr(begin);
  return result;
}

}  // namespace zerolab::report
