#include "tests/support/xml.hpp"

#include <fmt/format.h>

#include <regex>
#include <set>
#include <vector>

namespace zerolab::test {
namespace {

std::string fault_in_text(const std::string& text) {
  for (const char each : text) {
    const auto code = static_cast<unsigned char>(each);
    if (code < 0x20 && each != '\n' && each != '\t' && each != '\r') return "a control character";
  }
  const std::regex entity("&(lt|gt|amp|quot|apos|#[0-9]+|#x[0-9A-Fa-f]+);");
  if (std::regex_replace(text, entity, "").find('&') != std::string::npos) return "a bare &";
  return "";
}

/// Name and attributes of a start tag.
std::string fault_in_tag(const std::string& tag) {
  const std::regex whole(
      R"re([A-Za-z_][\w:.-]*(\s+[A-Za-z_][\w:.-]*=("[^"<]*"|'[^'<]*'))*\s*/?)re");
  if (!std::regex_match(tag, whole)) return "no tag: " + tag;
  const std::regex attribute(R"re(([A-Za-z_][\w:.-]*)=("[^"]*"|'[^']*'))re");
  std::set<std::string> seen;
  for (std::sregex_iterator i(tag.begin(), tag.end(), attribute), end; i != end; ++i) {
    if (!seen.insert((*i)[1]).second) return fmt::format("{} twice", (*i)[1].str());
  }
  return fault_in_text(tag);
}

}  // namespace

std::string fault_in_xml(const std::string& text) {
  std::vector<std::string> open;
  bool any = false;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = text.find('<', at);
    const std::string between = text.substr(at, begin - at);
    if (const std::string fault = fault_in_text(between); !fault.empty()) return fault;
    if (open.empty() && between.find_first_not_of(" \n\r\t") != std::string::npos) {
      return "text outside of the root";
    }
    if (begin == std::string::npos) break;
    const bool comment = text.compare(begin, 4, "<!--") == 0;
    const std::size_t end = text.find(comment ? "-->" : ">", begin);
    if (end == std::string::npos) return "a tag without an end";
    at = end + (comment ? 3 : 1);
    if (comment) {
      if (text.substr(begin + 4, end - begin - 4).find("--") != std::string::npos)
        return "-- in a comment";
      continue;
    }
    if (text[begin + 1] == '?' || text[begin + 1] == '!') continue;
    const std::string tag = text.substr(begin + 1, end - begin - 1);
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "an end without a begin: " + tag;
      open.pop_back();
      continue;
    }
    if (const std::string fault = fault_in_tag(tag); !fault.empty()) return fault;
    if (open.empty() && any) return "two roots";
    any = true;
    if (tag.back() != '/') open.push_back(tag.substr(0, tag.find_first_of(" \n\r\t")));
  }
  if (!any) return "no element";
  return open.empty() ? "" : "no end of " + open.back();
}

}  // namespace zerolab::test
