#include "stages/checkpoint/together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "stages/base/error.hpp"
#include "stages/comm/job.hpp"

namespace zerolab {
namespace {

constexpr char kFailed = '!';
constexpr char kDone = '.';
constexpr char kEnd = '\0';  // of a field

std::string text_of(const Error& error) {
  return fmt::format("{}{}{}{}{}{}{}", kFailed, static_cast<int>(error.code()), kEnd,
                     error.what_happened(), kEnd, error.way_out(), kEnd);
}

std::string field_at(const std::string& text, std::size_t number) {
  std::size_t begin = 1;
  for (; number > 0; --number) begin = text.find(kEnd, begin) + 1;
  return text.substr(begin, text.find(kEnd, begin) - begin);
}

}  // namespace

std::vector<std::string> share_texts(CommStream& stream, const std::string& mine,
                                     const std::string& owner) {
  const std::uint64_t length = mine.size();
  std::vector<std::uint64_t> lengths;
  for (const auto& bytes : share(stream, std::as_bytes(std::span(&length, 1)), owner)) {
    std::memcpy(&lengths.emplace_back(), bytes.data(), sizeof(length));
  }
  std::string padded = mine;
  padded.resize(*std::max_element(lengths.begin(), lengths.end()));
  std::vector<std::string> texts;
  const auto all = share(stream, std::as_bytes(std::span(padded)), owner);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    texts.emplace_back(reinterpret_cast<const char*>(all[rank].data()), lengths[rank]);
  }
  return texts;
}

std::vector<std::string> together(CommStream& stream, const std::string& owner,
                                  const std::function<std::string()>& part) {
  std::string mine;
  try {
    mine = kDone + part();
  } catch (const Error& error) {
    mine = text_of(error);
  } catch (const std::exception& error) {
    mine = text_of(internal_error(fmt::format("rank {}: {}", stream.rank(), error.what())));
  }
  std::vector<std::string> results = share_texts(stream, mine, owner);
  for (std::string& text : results) {
    if (text.front() == kFailed) {
      throw Error(static_cast<Code>(std::stoi(field_at(text, 0))), field_at(text, 1),
                  field_at(text, 2));
    }
    text.erase(0, 1);
  }
  return results;
}

}  // namespace zerolab
