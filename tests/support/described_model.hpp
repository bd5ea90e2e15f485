#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace zerolab::test {

/// When a group of parts runs; when it does not, its input is its output.
enum class When {
  always,
  never,
  odd_steps,   // optimizer steps count from 1; an evaluation is step 0
  even_batch,  // the tokens of this rank's micro-batch add up to an even number: ranks differ
  odd_batch,
};

/// One part of a described model. x has a row for every token.
struct Part {
  enum class Kind {
    linear,  // x W^T + b: <name>.weight [out, in], <name>.bias [out]
    norm,    // layer norm over a row, epsilon 1e-5: <name>.weight [out], <name>.bias [out]
    gelu,    // its tanh approximation
    scale,   // x * s, column by column, where s is a parameter of another part: <lender>.weight
    group,   // parts, one after the other
  };
  Kind kind = Kind::gelu;
  std::string name = {};  // parts with the same name are one module, which runs several times
  std::int64_t in = 0;    // widths of input and output; equal but for linear and group
  std::int64_t out = 0;
  std::string lender = {};       // scale: the norm whose weight it reads
  std::vector<Part> parts = {};  // group
  When when = When::always;      // group
  bool residual = false;         // group: x + parts(x), while it runs
  bool leaf = false;             // group: zerolab fetches all of it at once
  bool recomputed = false;       // group: zerolab runs it again in backward
};

/// A model as a value, so that it can be drawn at random and computed twice: by zerolab's modules
/// and stages, and by plain arithmetic in double that shares no code with them. Tokens ->
/// embedding.weight [vocabulary, width] -> parts -> logits [rows, vocabulary], by a linear part
/// "head" or, if tied, x E^T with the embedding's table E.
struct DescribedModel {
  std::int64_t vocabulary = 11;
  std::int64_t width = 3;             // of the embedding
  std::vector<Part> parts = {};       // the head, if there is one, is the last of them
  bool tied = false;                  // the last part's output is `width` wide then
  std::set<std::string> frozen = {};  // names of parameters
};

// Shorthand for descriptions.
Part linear_part(std::string name, std::int64_t in, std::int64_t out);
Part norm_part(std::string name, std::int64_t width);
Part gelu_part(std::string name, std::int64_t width);
Part scale_part(std::string name, std::int64_t width, std::string lender);
Part group_part(std::string name, std::vector<Part> parts);

}  // namespace zerolab::test
