#include "tests/support/plain_safetensors.hpp"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/support/sixteen_bits.hpp"

namespace zerolab::test {
namespace {

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

template <typename Bits>
Bits bits_at(const std::string& bytes, std::size_t at) {
  Bits bits = 0;
  for (std::size_t i = 0; i < sizeof bits; ++i) {  // little-endian
    bits = static_cast<Bits>(bits | static_cast<Bits>(static_cast<unsigned char>(bytes.at(at + i)))
                                        << (8 * i));
  }
  return bits;
}

std::uint32_t widened_bits(const std::string& dtype, const std::string& bytes, std::size_t at) {
  if (dtype == "F32") return bits_at<std::uint32_t>(bytes, at);
  const Format& format = dtype == "F16" ? kFp16 : kBf16;
  const double value = decoded(format, bits_at<std::uint16_t>(bytes, at));
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

}  // namespace

PlainFile read_plain_safetensors(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  expect(bytes.size() >= 8, file.string() + " is too short");
  const auto length = bits_at<std::uint64_t>(bytes, 0);
  expect(length <= bytes.size() - 8, "the header is longer than the file");
  const std::size_t data = 8 + length;
  PlainFile result;
  std::size_t covered = 0;
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  for (const auto& [name, json] : header.items()) {
    if (name == "__metadata__") {
      result.metadata = json.get<std::map<std::string, std::string>>();
      continue;
    }
    PlainTensor tensor{json.at("dtype"), json.at("shape"), {}};
    expect(tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16", tensor.dtype);
    const std::size_t begin = json.at("data_offsets").at(0);
    const std::size_t end = json.at("data_offsets").at(1);
    const std::size_t size = tensor.dtype == "F32" ? 4 : 2;
    std::size_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= static_cast<std::size_t>(extent);
    expect(end - begin == elements * size, name + " has not the bytes of its shape");
    covered += end - begin;
    for (std::size_t at = begin; at < end; at += size) {
      tensor.bits.push_back(widened_bits(tensor.dtype, bytes, data + at));
    }
    result.tensors.emplace(name, std::move(tensor));
  }
  expect(covered == bytes.size() - data, "the tensors do not fill the file");
  return result;
}

}  // namespace zerolab::test
