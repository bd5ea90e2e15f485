#include "stages/model/description.hpp"

#include "lab/temporary_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

constexpr std::string_view kTransformer = R"({
  "type": "transformer", "vocab_size": 37, "sequence_length": 8,
  "num_layers": 2, "num_heads": 2, "hidden_size": 16
})";
constexpr std::string_view kMlp = R"({
  "type": "mlp", "name": "odd", "vocab_size": 5, "sequence_length": 3,
  "embedding_size": 2, "hidden_sizes": [7, 4]
})";

TEST_CASE("the presets have the sizes that the documentation gives", "[model]") {
  CHECK(preset_names() == std::vector<std::string>{"mlp-small", "gpt-nano", "gpt-mini", "gpt2"});
  CHECK(parameter_count(describe_model("gpt2")) == 124'439'808);  // as published
  CHECK(parameter_count(describe_model("gpt-nano")) == 170'560);
  CHECK(parameter_count(describe_model("gpt-mini")) == 2'743'296);
  CHECK(parameter_count(describe_model("mlp-small")) ==
        256 * 16 + (256 * 256 + 256) + (256 * 256 + 256) + (256 * 256 + 256));
}

TEST_CASE("the default bucket holds at most a sixteenth of the model", "[model]") {
  for (const std::string& name : preset_names()) {
    const ModelDescription model = describe_model(name);
    const RunDefaults defaults = run_defaults(model);
    CHECK(defaults.reduce_bucket_size >= 1);
    CHECK(defaults.reduce_bucket_size * 16 <= parameter_count(model));
    CHECK(defaults.micro_batch >= 1);
    CHECK(defaults.learning_rate > 0);
  }
}

TEST_CASE("a file describes a model of any size", "[model]") {
  const TemporaryFolder folder;
  const ModelDescription model = describe_model(folder.write("tiny.json", kTransformer).string());
  CHECK(model.name == "tiny");
  CHECK(model.num_heads == 2);
  CHECK(parameter_count(model) == 37 * 16 + 8 * 16 + 2 * (12 * 256 + 13 * 16) + 32);

  const ModelDescription mlp = parse_model(kMlp, "mlp.json");
  CHECK(mlp.name == "odd");
  CHECK(mlp.hidden_sizes == std::vector<Index>{7, 4});
  CHECK(parameter_count(mlp) == 5 * 2 + (6 * 7 + 7) + (7 * 4 + 4) + (4 * 5 + 5));
}

TEST_CASE("an unknown model name lists the presets and guesses", "[model]") {
  const auto error = thrown_by([] { describe_model("gpt-nnao"); });
  REQUIRE(error);
  CHECK(error->code() == Code::model_description);
  CHECK(contains(error->what(), "did you mean gpt-nano?"));
  CHECK(contains(error->what(), "mlp-small, gpt-nano, gpt-mini, gpt2"));
}

TEST_CASE("malformed JSON is reported with line and column", "[model]") {
  const auto error = thrown_by([] { parse_model("{\n  \"type\": mlp\n}", "m.json"); });
  REQUIRE(error);
  CHECK(error->code() == Code::config_syntax);
  CHECK(contains(error->what(), "m.json:2:11"));
}

TEST_CASE("a description that cannot be a model is refused, naming key and value", "[model]") {
  struct Case {
    std::string_view json;
    std::vector<std::string_view> says;
  };
  const std::vector<Case> cases{
      {R"([])", {"must be an object, not a list"}},
      {R"({})", {"type is missing"}},
      {R"({"type": "transfomer"})", {R"(type is "transfomer")", "did you mean transformer?"}},
      {R"({"type": "mlp", "vocab_size": 5, "sequence_length": 3, "embedding_size": 2})",
       {"hidden_sizes is missing"}},
      {R"({"type": "mlp", "vocab_size": 5, "sequence_length": 3, "embedding_size": 2,
           "hidden_sizes": [4, 0]})",
       {"hidden_sizes[1] is 0"}},
      {R"({"type": "mlp", "vocab_size": 5, "sequence_length": 3, "embedding_size": 2,
           "hidden_sizes": 4})",
       {"hidden_sizes must be a list"}},
      {R"({"type": "transformer", "vocab_size": 0, "sequence_length": -8, "num_layers": 1.5,
           "num_heads": "2", "hiden_size": 16, "hidden_size": 1e30, "vocab_size": 3})",
       {"vocab_size is given more than once", "sequence_length is -8", "num_layers is 1.5",
        "num_heads must be a whole number, not a string", "unknown key hiden_size",
        "did you mean hidden_size?", "hidden_size is 1e+30"}},
      {R"({"type": "transformer", "vocab_size": 5, "sequence_length": 8, "num_layers": 1,
           "num_heads": 3, "hidden_size": 16})",
       {"hidden_size 16 is not divisible by num_heads 3"}},
      {R"({"type": "transformer", "vocab_size": 5, "sequence_length": 8, "num_layers": 2000000000,
           "num_heads": 1, "hidden_size": 2000000000})",
       {"parameters"}},
  };
  for (const Case& bad : cases) {
    const auto error = thrown_by([&] { parse_model(bad.json, "m.json"); });
    INFO(bad.json);
    REQUIRE(error);
    CHECK(error->code() == Code::model_description);
    INFO(error->what());
    for (const std::string_view part : bad.says) CHECK(contains(error->what(), part));
    CHECK(error->way_out() != "");
  }
}

}  // namespace
}  // namespace zerolab
