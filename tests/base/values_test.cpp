#include "stages/base/values.hpp"

#include <array>

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;

TEMPLATE_TEST_CASE("values that are not fp32 are not handed out as floats", "[values]", Values,
                   ConstValues) {
  std::array<float, 4> memory{};
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::int32, Dtype::bytes}) {
    const TestType values(memory.data(), dtype);
    for (const bool by_name : {true, false}) {
      const auto error = thrown_by([&] {
        const float* floats = by_name ? values.floats() : static_cast<const float*>(values);
        CHECK(floats == nullptr);  // not reached
      });
      REQUIRE(error);
      CHECK(error->code() == Code::usage);
      CHECK(contains(error->what(), std::string(name_of(dtype))));
    }
  }
  const TestType values(memory.data());
  CHECK(values.dtype() == Dtype::fp32);
  CHECK(values.floats() == memory.data());
  CHECK(static_cast<const float*>(values) == memory.data());
}

TEMPLATE_TEST_CASE("values move by elements of their own size", "[values]", Values, ConstValues) {
  std::array<std::byte, 64> memory{};
  for (const auto& [dtype, size] : {std::pair{Dtype::fp32, 4},
                                    {Dtype::bf16, 2},
                                    {Dtype::fp16, 2},
                                    {Dtype::int32, 4},
                                    {Dtype::bytes, 1}}) {
    const TestType first(memory.data(), dtype);
    for (const Index elements : {0, 1, 3, 7}) {
      const TestType moved = first + elements;
      CHECK(moved.data() == memory.data() + elements * size);
      CHECK(moved.dtype() == dtype);
      CHECK((moved + -elements).data() == memory.data());
    }
  }
}

TEMPLATE_TEST_CASE("no values stay none wherever they move", "[values]", Values, ConstValues) {
  for (const TestType none : {TestType{}, TestType{nullptr}, TestType(nullptr, Dtype::bf16)}) {
    CHECK_FALSE(none);
    CHECK(none == nullptr);
    CHECK_FALSE(none + 5);
    CHECK((none + 5).dtype() == none.dtype());
  }
  float one = 1;
  CHECK(TestType(&one));
  CHECK_FALSE(TestType(&one) == nullptr);
}

TEST_CASE("values to write are values to read, of the same type and place", "[values]") {
  std::uint16_t bits = 0;
  const ConstValues read = Values(&bits, Dtype::fp16);
  CHECK(read.data() == &bits);
  CHECK(read.dtype() == Dtype::fp16);
}
