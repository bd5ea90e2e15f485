#include "stages/memory/ledger.hpp"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

struct Books {
  explicit Books(Index budget = Ledger::kUnlimited) : ledger("device", recorder, budget) {}

  Recorder recorder{2};
  Ledger ledger;
};

/// The error that the allocation ends with.
OutOfMemory refused(Ledger& ledger, Index bytes, const Governor* governor = nullptr) {
  try {
    const Buffer buffer = ledger.allocate(bytes, Category::gradients, "bucket", governor);
  } catch (const OutOfMemory& error) {
    return error;
  }
  return OutOfMemory({.pool = "it fitted"});
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a budget is exact to the byte", "[memory]") {
  Books books(100);
  const Buffer most = books.ledger.allocate(99, Category::parameters, "weights");
  CHECK_THROWS_AS(books.ledger.allocate(2, Category::parameters, "two"), OutOfMemory);
  const Buffer last = books.ledger.allocate(1, Category::parameters, "one");
  CHECK(books.ledger.live().total() == 100);
  CHECK_THROWS_AS(books.ledger.allocate(1, Category::parameters, "more"), OutOfMemory);
}

TEST_CASE("a refused allocation leaves the books as they were", "[memory]") {
  Books books(100);
  const Buffer some = books.ledger.allocate(60, Category::parameters, "weights");
  CHECK(refused(books.ledger, 41).code() == Code::out_of_memory);
  CHECK(books.ledger.live().total() == 60);
  CHECK(books.ledger.peak().total() == 60);
  CHECK(books.ledger.category_peak()[Category::gradients] == 0);
}

TEST_CASE("the peak is one moment, each category also has its own", "[memory]") {
  Books books;
  const Buffer weights = books.ledger.allocate(10, Category::parameters, "weights");
  {
    const Buffer big = books.ledger.allocate(50, Category::activations, "activations");
    const Buffer small = books.ledger.allocate(5, Category::workspace, "scratch");
  }
  const Buffer wide = books.ledger.allocate(40, Category::workspace, "scratch");

  CHECK(books.ledger.live().total() == 50);
  CHECK(books.ledger.peak().total() == 65);
  CHECK(books.ledger.peak()[Category::activations] == 50);
  CHECK(books.ledger.peak()[Category::workspace] == 5);
  CHECK(books.ledger.category_peak()[Category::workspace] == 40);
  CHECK(books.ledger.category_peak()[Category::activations] == 50);
}

TEST_CASE("steady is what was live at the last step boundary", "[memory]") {
  Books books;
  Buffer kept = books.ledger.allocate(10, Category::optimizer, "moments");
  CHECK(books.ledger.steady().total() == 0);
  books.ledger.mark_step_boundary();
  const Buffer later = books.ledger.allocate(20, Category::gradients, "gradients");
  kept.reset();
  CHECK(books.ledger.steady().total() == 10);
  CHECK(books.ledger.steady()[Category::optimizer] == 10);
}

TEST_CASE("a moved buffer is given back once, by its last owner", "[memory]") {
  Books books;
  {
    Buffer first = books.ledger.allocate(10, Category::parameters, "first");
    Buffer second = std::move(first);
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): what a moved-from buffer is
    CHECK(first.bytes() == 0);
    CHECK(second.bytes() == 10);
    second = books.ledger.allocate(30, Category::parameters, "second");
    CHECK(books.ledger.live().total() == 30);
    Buffer& self = second;
    second = std::move(self);
    CHECK(books.ledger.live().total() == 30);
    second.reset();
    second.reset();
    CHECK(books.ledger.live().total() == 0);
  }
  CHECK(books.ledger.live().total() == 0);
}

TEST_CASE("no bytes are a buffer too, even when nothing is left", "[memory]") {
  Books books(10);
  const Buffer all = books.ledger.allocate(10, Category::parameters, "all");
  const Buffer none = books.ledger.allocate(0, Category::parameters, "none");
  CHECK(none);
  CHECK(none.data() != nullptr);
  CHECK(books.ledger.live().total() == 10);
  CHECK(books.ledger.holders().size() == 1);
}

TEST_CASE("buffers are aligned to 64 bytes", "[memory]") {
  Books books;
  std::vector<Buffer> buffers;
  for (const Index bytes : {0, 1, 3, 64, 65, 4096, 100001}) {
    buffers.push_back(books.ledger.allocate(bytes, Category::workspace, "any"));
    CHECK(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % 64 == 0);
  }
}

TEST_CASE("holders are summed by owner and category, largest first", "[memory]") {
  Books books;
  const Buffer a = books.ledger.allocate(10, Category::parameters, "layer 1");
  const Buffer b = books.ledger.allocate(15, Category::parameters, "layer 2");
  const Buffer c = books.ledger.allocate(10, Category::parameters, "layer 1");
  const Buffer d = books.ledger.allocate(1, Category::gradients, "layer 1");
  const auto holders = books.ledger.holders();
  REQUIRE(holders.size() == 3);
  CHECK((holders[0].owner == "layer 1" && holders[0].bytes == 20));
  CHECK((holders[1].owner == "layer 2" && holders[1].bytes == 15));
  CHECK((holders[2].category == Category::gradients && holders[2].bytes == 1));
}

/// Ten changes and one before them, in which an owner gives back and takes again; then a refusal.
OutOfMemory refused_in_a_step() {
  Books books(1000);
  const Proportional bucket({"reduce_bucket_size", 20});
  books.recorder.set_step(7, 1);
  books.recorder.set_phase(Phase::backward);
  std::vector<Buffer> kept;
  kept.push_back(books.ledger.allocate(400, Category::parameters, "parameters"));
  kept.push_back(books.ledger.allocate(150, Category::reduce_buffers, "reduce bucket 0", &bucket));
  for (const char* const layer : {"layer 1", "layer 2", "layer 3"}) {
    books.recorder.begin_module(layer);
    const Buffer scratch = books.ledger.allocate(30, Category::workspace, "scratch");
    kept.push_back(books.ledger.allocate(100, Category::activations, layer));
    if (kept.size() < 5) books.recorder.end_module();
  }
  kept.push_back(books.ledger.allocate(0, Category::gradients, "nothing"));
  return refused(books.ledger, 175, &bucket);
}

TEST_CASE("an out-of-memory report is who, what, when, categories, holders and the latest changes",
          "[memory]") {
  CHECK(
      refused_in_a_step().what_happened() ==
      R"(rank 2 is out of device memory: 175 B (175) for bucket [gradients] in step 7, micro-step 1, backward of 'layer 3'
  budget 1000 bytes, live 850, short by 25
  live by category:
    parameters                 400
    activations                300
    reduce_buffers             150
  largest holders:
               400  parameters [parameters]
               150  reduce bucket 0 [reduce_buffers]
               100  layer 1 [activations]
               100  layer 2 [activations]
               100  layer 3 [activations]
  taken (+) and given back (-) before it, and live then:
               +30            580  scratch [workspace]    step 7, micro-step 1, backward of 'layer 1'
              +100            680  layer 1 [activations]  step 7, micro-step 1, backward of 'layer 1'
               -30            650  scratch [workspace]    step 7, micro-step 1, backward
               +30            680  scratch [workspace]    step 7, micro-step 1, backward of 'layer 2'
              +100            780  layer 2 [activations]  step 7, micro-step 1, backward of 'layer 2'
               -30            750  scratch [workspace]    step 7, micro-step 1, backward
               +30            780  scratch [workspace]    step 7, micro-step 1, backward of 'layer 3'
              +100            880  layer 3 [activations]  step 7, micro-step 1, backward of 'layer 3'
               -30            850  scratch [workspace]    step 7, micro-step 1, backward of 'layer 3'
                +0            850  nothing [gradients]    step 7, micro-step 1, backward of 'layer 3')");
}

TEST_CASE("the advice of a report is the budget, then settings with the value they have",
          "[memory]") {
  CHECK(refused_in_a_step().way_out() ==
        "--device-memory 1025 or more for this allocation; or reduce_bucket_size 18 would have "
        "fitted (it is 20); or more ranks, or a higher stage");
}

TEST_CASE("that more ranks or a higher stage need less is said unless it is known by how much",
          "[memory]") {
  const std::string known = "world_size";
  for (const std::string& name : {std::string("reduce_bucket_size"), known}) {
    Books books(100);
    const Proportional setting({name, 10});
    INFO(name);
    CHECK(has(refused(books.ledger, 101, &setting).way_out(), "a higher stage") == (name != known));
  }
}

TEST_CASE("a report says the same to programs", "[memory]") {
  const nlohmann::ordered_json details = refused_in_a_step().details();
  const std::string text = details.dump();
  INFO(text);
  CHECK(details["rank"] == 2);
  CHECK(details["requested"] == 175);
  CHECK(details["owner"] == "bucket");
  CHECK(details["category"] == "gradients");
  CHECK(details["where"] == "step 7, micro-step 1, backward of 'layer 3'");
  CHECK(details["budget"] == 1000);
  CHECK(details["live"] == 850);
  CHECK(details["short_by"] == 25);
  CHECK(details["by_category"].dump() ==
        R"({"parameters":400,"activations":300,"reduce_buffers":150})");
  CHECK(details["holders"].size() == 5);
  CHECK(details["holders"][1].dump() ==
        R"({"owner":"reduce bucket 0","category":"reduce_buffers","bytes":150})");
  CHECK(details["last"].size() == 10);
  CHECK(details["last"][8].dump() ==
        R"({"owner":"scratch","category":"workspace","bytes":-30,)"
        R"("where":"step 7, micro-step 1, backward of 'layer 3'","live":850})");
  CHECK(details["advice"].dump() == R"([{"setting":"--device-memory","value":1000,"fits":1025},)"
                                    R"({"setting":"reduce_bucket_size","value":20,"fits":18}])");
}

TEST_CASE("an error without more to say has no details", "[memory]") {
  CHECK(Error(Code::usage, "what", "way out").details().is_null());
}

TEST_CASE("changes are those before the refusal: all that there are, and at most ten", "[memory]") {
  Books books(100);
  CHECK(refused(books.ledger, 101).shortage().last.empty());
  for (int i = 0; i < 4; ++i) {
    const Buffer buffer =
        books.ledger.allocate(i, Category::workspace, fmt::format("number {}", i));
    CHECK(refused(books.ledger, 101).shortage().last.size() ==
          std::min<std::size_t>(static_cast<std::size_t>(2 * i + 1), 10));
  }
  const std::vector<Shortage::Change> last = refused(books.ledger, 101).shortage().last;
  REQUIRE(last.size() == 8);
  for (std::size_t i = 0; i < last.size(); ++i) {
    CHECK(last[i].what.owner == fmt::format("number {}", i / 2));
    CHECK(last[i].what.bytes == static_cast<Index>(i / 2) * (i % 2 == 0 ? 1 : -1));
  }
}

TEST_CASE("a change keeps its owner when the block and its end are long gone", "[memory]") {
  Books books(100);
  Buffer early = books.ledger.allocate(7, Category::workspace, "early");
  for (int i = 0; i < 3; ++i) books.ledger.allocate(1, Category::workspace, "between");
  early.reset();
  for (int i = 0; i < 20; ++i) {
    for (const auto& change : refused(books.ledger, 101).shortage().last) {
      CHECK(change.what.owner != "");
    }
    books.ledger.allocate(1, Category::workspace, "later");
  }
}

TEST_CASE("the advised value of a setting fits, and one more does not", "[memory]") {
  // Sizes that are not a whole number of bytes for each unit of the setting, as with padding.
  for (const Index value : {3, 7, 14, 48, 49, 1000, 999983}) {
    for (const Index room : {1, 9, 10, 48, 100, 4000, 123457}) {
      for (const Index bytes : {value, value + 4, 5 * value, 5 * value + 2, 3 * value - 1}) {
        if (bytes <= room) continue;
        const Index fixed = 50;
        Books books(fixed + room);
        const Proportional bucket({"reduce_bucket_size", value});
        const Buffer rest = books.ledger.allocate(fixed, Category::parameters, "weights");
        const std::string advice = refused(books.ledger, bytes, &bucket).way_out();
        const Index fits = room * value / bytes;
        INFO(advice << "; it should be " << fits);
        CHECK(has(advice, fmt::format("reduce_bucket_size {} would", fits)) == (fits >= 1));
        CHECK(has(advice, "reduce_bucket_size") == (fits >= 1));
      }
    }
  }
}

TEST_CASE("what is live and scales with the same setting counts in the advice", "[memory]") {
  Books books(100);
  const Proportional bucket({"reduce_bucket_size", 20});
  const Buffer one = books.ledger.allocate(80, Category::reduce_buffers, "one", &bucket);
  CHECK(has(refused(books.ledger, 80, &bucket).way_out(), "reduce_bucket_size 12 would"));
}

TEST_CASE("a setting that cannot help is not advised", "[memory]") {
  Books books(100);
  const Buffer rest = books.ledger.allocate(95, Category::parameters, "weights");
  const Proportional bucket({"reduce_bucket_size", 20, 10});
  CHECK_FALSE(has(refused(books.ledger, 80, &bucket).way_out(), "reduce_bucket_size"));
}

/// A switch that halves, a threshold, and a setting that nothing depends on.
class Threshold final : public Governor {
 public:
  std::vector<Setting> settings() const override {
    return {{"checkpointing", 0, 1, true}, {"prefetch", 500, 0}, {"hopeless", 500, 0}};
  }
  Index bytes_at(std::size_t index, Index value, const Held& held) const override {
    if (index == 0) return value == 0 ? held.bytes : held.bytes / 2;
    if (index == 1) return value >= 123 ? held.bytes : 0;
    return held.bytes;
  }
};

TEST_CASE("a block may depend on several settings in any way, and each is looked at by itself",
          "[memory]") {
  Books books(100);
  const Threshold threshold;
  const Buffer some = books.ledger.allocate(80, Category::gather_buffers, "whole", &threshold);
  CHECK(refused(books.ledger, 60).way_out() ==
        "--device-memory 140 or more for this allocation; or checkpointing true would have fitted "
        "(it is false); or prefetch 122 would have fitted (it is 500); or more ranks, or a higher "
        "stage");
  CHECK(has(refused(books.ledger, 61).way_out(), "prefetch 122"));
  CHECK_FALSE(has(refused(books.ledger, 61).way_out(), "checkpointing"));
}

TEST_CASE("the governor of a block can change while it lives", "[memory]") {
  Books books(100);
  const Proportional bucket({"reduce_bucket_size", 10});
  Buffer gradient = books.ledger.allocate(80, Category::reduce_buffers, "gradient");
  CHECK_FALSE(has(refused(books.ledger, 60).way_out(), "reduce_bucket_size"));
  gradient.put_under(bucket);
  CHECK(has(refused(books.ledger, 60).way_out(), "reduce_bucket_size 5 would"));
}

#ifdef ZEROLAB_POISON_MEMORY
/// Keeps what was freed, so that it can be looked at.
class Morgue final : public std::pmr::memory_resource {
 public:
  std::vector<float> freed;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    freed.resize(bytes / sizeof(float));
    std::memcpy(freed.data(), memory, bytes);
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST_CASE("memory is NaN before it is written and after it was given back", "[memory]") {
  Morgue morgue;
  Recorder recorder(0);
  Ledger ledger("device", recorder, Ledger::kUnlimited, &morgue);
  Buffer buffer = ledger.allocate(64, Category::parameters, "weights");
  for (int i = 0; i < 16; ++i) CHECK(buffer.floats()[i] != buffer.floats()[i]);
  std::fill_n(buffer.floats(), 16, 1.0F);
  buffer.reset();
  REQUIRE(morgue.freed.size() == 16);
  for (const float value : morgue.freed) CHECK(value != value);
}
#endif

TEST_CASE("byte counts for people have three digits and a unit", "[memory]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes(1310720) == "1.25 MiB");
  CHECK(human_bytes(Index{200} << 30) == "200 GiB");
}

}  // namespace
}  // namespace zerolab
