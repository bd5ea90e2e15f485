#include "stages/engine/byte_data.hpp"

#include <fmt/format.h>

#include <numeric>
#include <set>

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

// Byte i of the text is i modulo 251, so that a byte tells where it stands.
Text counting_text(Index size) {
  Text text;
  text.origin = "counting";
  text.parts = {{"counting", 0}};
  for (Index i = 0; i < size; ++i) text.bytes.push_back(static_cast<std::uint8_t>(i % 251));
  return text;
}

struct Batch {
  std::vector<std::int32_t> tokens, targets;
  bool operator==(const Batch&) const = default;
};

Batch batch(const ByteData& data, Index step, Index position, Index count, Index length) {
  Batch result{std::vector<std::int32_t>(static_cast<std::size_t>(count * length)),
               std::vector<std::int32_t>(static_cast<std::size_t>(count * length))};
  data.fill_batch(step, position, count, length, result.tokens.data(), result.targets.data());
  return result;
}

TEST_CASE("the default text is the one the documentation was made with", "[data]") {
  const Text text = load_default_text();
  CHECK(text.note == "");
  CHECK(text.size() == 126643);
  CHECK(text.parts.size() == 7);
}

TEST_CASE("a default text with other bytes is used and said to differ", "[data]") {
  const TemporaryFolder folder;
  for (const char* name :
       {"Apache-2.0", "CC0-1.0", "GFDL-1.3", "GPL-3", "LGPL-3", "MPL-1.1", "MPL-2.0"}) {
    folder.write(name, name);
  }
  const Text text = load_default_text(folder.path());
  CHECK(text.size() == 10 + 7 + 8 + 5 + 6 + 7 + 7);
  CHECK(contains(text.note, fmt::format("{:016x}", text.hash)));
}

TEST_CASE("without the licence texts the guides are read, and without those there is an error",
          "[data]") {
  const TemporaryFolder folder;
  folder.write("docs/guide.md", "a guide");
  const Text text = load_default_text(folder.path() / "none", folder.path() / "docs");
  CHECK(text.size() == 7);
  CHECK(contains(text.note, "the project's own guides"));
  CHECK(contains(text.note, "GPL-3"));

  const auto error = thrown_by([&] { load_default_text(folder.path() / "none"); });
  REQUIRE(error);
  CHECK(error->code() == Code::data);
  CHECK(contains(error->way_out(), "--data"));
}

TEST_CASE("a folder is read in the order of its paths, whatever order the disk has", "[data]") {
  const TemporaryFolder folder;
  folder.write("b", "2");
  folder.write("c/a", "3");
  folder.write("a", "1");
  const Text text = load_text(folder.path());
  CHECK(std::string(text.bytes.begin(), text.bytes.end()) == "123");
  REQUIRE(text.parts.size() == 3);
  CHECK(text.parts[2].begin == 2);
}

TEST_CASE("a text that cannot be used is refused with its name and a way out", "[data]") {
  const TemporaryFolder folder;
  const std::filesystem::path empty = folder.write("empty.txt", "");
  std::filesystem::create_directories(folder.path() / "bare");
  struct Case {
    std::filesystem::path path;
    std::string_view why;
  };
  for (const Case& bad :
       {Case{folder.path() / "absent", "there is no file or folder"}, Case{empty, "is empty"},
        Case{folder.path() / "bare", "has no files"},
        Case{"/proc/self/mem", "failed"},  // a regular file whose first byte cannot be read
        Case{"/dev/null", "neither a file nor a folder"}}) {
    const auto error = thrown_by([&] { load_text(bad.path); });
    INFO(bad.path);
    REQUIRE(error);
    CHECK(error->code() == Code::data);
    CHECK(contains(error->what(), bad.path.string()));
    CHECK(contains(error->what(), bad.why));
    CHECK(error->way_out() != "");
  }
}

TEST_CASE("targets are the bytes that follow, and the held-out part is never trained on",
          "[data]") {
  const ByteData data(counting_text(250), 7);
  REQUIRE(data.train_size() == 225);
  std::set<std::int32_t> starts;
  for (Index step = 0; step < 200; ++step) {
    const Batch b = batch(data, step, 0, 8, 5);
    for (std::size_t i = 0; i < b.tokens.size(); ++i) CHECK(b.targets[i] == b.tokens[i] + 1);
    for (const std::int32_t target : b.targets) CHECK(target < 225);
    for (std::size_t i = 0; i < b.tokens.size(); i += 5) starts.insert(b.tokens[i]);
  }
  CHECK(*starts.begin() == 0);
  CHECK(*starts.rbegin() == 219);  // the last start whose targets end with the training part
}

TEST_CASE("a batch depends on seed, step and position only, not on how it is cut", "[data]") {
  const ByteData data(counting_text(5000), 7);
  const Batch whole = batch(data, 3, 0, 12, 16);
  for (const Index ranks : {1, 2, 3, 4, 6}) {
    Batch joined;
    for (Index rank = 0; rank < ranks; ++rank) {
      const Batch part = batch(data, 3, rank * 12 / ranks, 12 / ranks, 16);
      joined.tokens.insert(joined.tokens.end(), part.tokens.begin(), part.tokens.end());
      joined.targets.insert(joined.targets.end(), part.targets.begin(), part.targets.end());
    }
    CHECK(joined == whole);
  }
  CHECK_FALSE(batch(data, 4, 0, 12, 16) == whole);
  CHECK_FALSE(batch(ByteData(counting_text(5000), 8), 3, 0, 12, 16) == whole);
}

TEST_CASE("validation sequences lie side by side in the held-out part and start over", "[data]") {
  const ByteData data(counting_text(250), 7);
  REQUIRE(data.validation_sequences(8) == 3);  // 25 bytes held out, each sequence sees one more
  std::vector<std::int32_t> tokens(4 * 8);
  std::vector<std::int32_t> targets(4 * 8);
  data.fill_validation(0, 4, 8, tokens.data(), targets.data());
  std::vector<std::int32_t> expected(24);
  std::iota(expected.begin(), expected.end(), 225);
  CHECK(std::equal(expected.begin(), expected.end(), tokens.begin()));
  CHECK(tokens[24] == 225);
  CHECK(targets[23] == 249);
}

TEST_CASE("a text one byte too short is refused with size and need, one that fits is not",
          "[data]") {
  const auto error = thrown_by([] { ByteData(counting_text(169), 0).check_fits(16, 256); });
  REQUIRE(error);
  CHECK(error->code() == Code::data);
  CHECK(contains(error->what(), "169 bytes"));
  CHECK(contains(error->what(), "at least 170"));

  const ByteData enough(counting_text(170), 0);
  enough.check_fits(16, 256);
  CHECK(enough.validation_sequences(16) == 1);
}

TEST_CASE("a byte outside the vocabulary is named with its file and its offset there", "[data]") {
  const TemporaryFolder folder;
  folder.write("1", std::string(100, 'a'));
  folder.write("2", std::string(99, 'a') + "\xC3");
  const ByteData data(load_text(folder.path()), 0);
  data.check_fits(8, 256);
  const auto error = thrown_by([&] { data.check_fits(8, 128); });
  REQUIRE(error);
  CHECK(contains(error->what(), (folder.path() / "2").string()));
  CHECK(contains(error->what(), "byte 195 at offset 99"));
}

}  // namespace
}  // namespace zerolab
