#include "tests/support/plain_model.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace zerolab::test {
namespace {

void demand(bool holds, const std::string& name, const std::string& complaint) {
  if (!holds) throw std::logic_error(name + ": " + complaint);
}

/// A parameter or a result: a matrix, and the derivative of the loss by each of its elements.
struct Variable {
  std::string name;
  std::size_t rows, columns;
  std::vector<double> value, gradient;

  Variable(std::string of, std::size_t m, std::size_t n)
      : name(std::move(of)), rows(m), columns(n), value(m * n), gradient(m * n) {}
};
using Parameters = std::map<std::string, Variable>;

/// Remembers, in the order of the computation, how to take the gradient of a result to what it was
/// made of. Nothing is ever overwritten: who reads a variable twice adds to its gradient twice.
class Tape {
 public:
  Variable& add(std::size_t rows, std::size_t columns) {
    return variables_.emplace_back("result", rows, columns);
  }
  void record(std::function<void()> backward) { backward_.push_back(std::move(backward)); }
  void run_backward() const {
    for (auto each = backward_.rbegin(); each != backward_.rend(); ++each) (*each)();
  }

 private:
  std::deque<Variable> variables_;  // does not move them when it grows
  std::vector<std::function<void()>> backward_;
};

Variable& look_up(Tape& tape, Variable& table, const std::vector<std::int32_t>& tokens) {
  Variable& y = tape.add(tokens.size(), table.columns);
  std::vector<std::size_t> source;  // where in the table each element of y is
  for (const std::int32_t token : tokens) {
    const auto row = static_cast<std::size_t>(token);
    demand(row < table.rows, table.name, "has no row for token " + std::to_string(token));
    for (std::size_t i = 0; i < table.columns; ++i) source.push_back(row * table.columns + i);
  }
  for (std::size_t i = 0; i < source.size(); ++i) y.value[i] = table.value[source[i]];
  tape.record([&table, &y, source] {
    for (std::size_t i = 0; i < source.size(); ++i) table.gradient[source[i]] += y.gradient[i];
  });
  return y;
}

/// x W^T.
Variable& multiply(Tape& tape, Variable& x, Variable& weight) {
  demand(x.columns == weight.columns, weight.name, "is not as wide as its input");
  Variable& y = tape.add(x.rows, weight.rows);
  const auto each = [&x, &y](const auto& visit) {
    for (std::size_t row = 0; row < x.rows; ++row) {
      for (std::size_t out = 0; out < y.columns; ++out) {
        for (std::size_t in = 0; in < x.columns; ++in)
          visit(row * y.columns + out, row * x.columns + in, out * x.columns + in);
      }
    }
  };
  each([&](std::size_t of_y, std::size_t of_x, std::size_t of_weight) {
    y.value[of_y] += x.value[of_x] * weight.value[of_weight];
  });
  tape.record([&x, &weight, &y, each] {
    each([&](std::size_t of_y, std::size_t of_x, std::size_t of_weight) {
      x.gradient[of_x] += y.gradient[of_y] * weight.value[of_weight];
      weight.gradient[of_weight] += y.gradient[of_y] * x.value[of_x];
    });
  });
  return y;
}

using Function = double (*)(double a, double b);

/// f(a, b), element by element; if b is a single row, every row of a meets it.
Variable& combine(Tape& tape, Variable& a, Variable& b, Function f, Function df_da,
                  Function df_db) {
  demand(a.columns == b.columns, b.name, "is not as wide as what it meets");
  demand(b.rows == 1 || b.rows == a.rows, b.name, "is not one row");
  Variable& y = tape.add(a.rows, a.columns);
  for (std::size_t i = 0; i < y.value.size(); ++i)
    y.value[i] = f(a.value[i], b.value[i % b.value.size()]);
  tape.record([&a, &b, &y, df_da, df_db] {
    for (std::size_t i = 0; i < y.value.size(); ++i) {
      const std::size_t of_b = i % b.value.size();
      a.gradient[i] += y.gradient[i] * df_da(a.value[i], b.value[of_b]);
      b.gradient[of_b] += y.gradient[i] * df_db(a.value[i], b.value[of_b]);
    }
  });
  return y;
}

Variable& add(Tape& tape, Variable& a, Variable& b) {
  const Function sum = [](double x, double y) { return x + y; };
  const Function one = [](double, double) { return 1.0; };
  return combine(tape, a, b, sum, one, one);
}

Variable& scale(Tape& tape, Variable& a, Variable& b) {
  const Function product = [](double x, double y) { return x * y; };
  const Function by_a = [](double, double y) { return y; };
  const Function by_b = [](double x, double) { return x; };
  return combine(tape, a, b, product, by_a, by_b);
}

/// Every row with mean 0 and, but for epsilon, variance 1: layer norm without gain and bias.
Variable& normalize(Tape& tape, Variable& x) {
  Variable& y = tape.add(x.rows, x.columns);
  const auto width = static_cast<double>(x.columns);
  std::vector<double> inverse_deviations;
  for (std::size_t begin = 0; begin < x.value.size(); begin += x.columns) {
    double mean = 0, variance = 0;
    for (std::size_t i = begin; i < begin + x.columns; ++i) mean += x.value[i] / width;
    for (std::size_t i = begin; i < begin + x.columns; ++i)
      variance += (x.value[i] - mean) * (x.value[i] - mean) / width;
    inverse_deviations.push_back(1 / std::sqrt(variance + 1e-5));
    for (std::size_t i = begin; i < begin + x.columns; ++i)
      y.value[i] = (x.value[i] - mean) * inverse_deviations.back();
  }
  // With r the inverse deviation and g the gradient of y: dx = r (g - mean(g) - y mean(g y)), since
  // dmean/dx_i = 1/width and dr/dx_i = -r^2 y_i/width.
  tape.record([&x, &y, width, inverse_deviations] {
    for (std::size_t row = 0; row < x.rows; ++row) {
      const std::size_t begin = row * x.columns;
      double mean = 0, mean_with_y = 0;
      for (std::size_t i = begin; i < begin + x.columns; ++i) {
        mean += y.gradient[i] / width;
        mean_with_y += y.gradient[i] * y.value[i] / width;
      }
      for (std::size_t i = begin; i < begin + x.columns; ++i) {
        x.gradient[i] +=
            inverse_deviations[row] * (y.gradient[i] - mean - y.value[i] * mean_with_y);
      }
    }
  });
  return y;
}

/// 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3).
Variable& gelu(Tape& tape, Variable& x) {
  Variable& y = tape.add(x.rows, x.columns);
  const double root = std::sqrt(2 / std::numbers::pi);
  const auto tanh_u = [root](double at) {
    return std::tanh(root * (at + 0.044715 * at * at * at));
  };
  for (std::size_t i = 0; i < y.value.size(); ++i)
    y.value[i] = 0.5 * x.value[i] * (1 + tanh_u(x.value[i]));
  tape.record([&x, &y, root, tanh_u] {
    for (std::size_t i = 0; i < y.value.size(); ++i) {
      const double at = x.value[i], t = tanh_u(at);
      const double du = root * (1 + 3 * 0.044715 * at * at);
      x.gradient[i] += y.gradient[i] * (0.5 * (1 + t) + 0.5 * at * (1 - t * t) * du);
    }
  });
  return y;
}

/// The mean over the rows of -log softmax(logits)[target]. Backward begins here.
double cross_entropy(Tape& tape, Variable& logits, const std::vector<std::int32_t>& targets) {
  const auto rows = static_cast<double>(logits.rows);
  double loss = 0;
  std::vector<double> by_logit;  // softmax(logits) - 1 at the target, per row
  for (std::size_t row = 0; row < logits.rows; ++row) {
    const auto target = static_cast<std::size_t>(targets[row]);
    demand(target < logits.columns, "the logits", "no target " + std::to_string(targets[row]));
    const double* of_row = &logits.value[row * logits.columns];
    const double largest = *std::max_element(of_row, of_row + logits.columns);
    double sum = 0;
    for (std::size_t v = 0; v < logits.columns; ++v) sum += std::exp(of_row[v] - largest);
    const double log_sum = largest + std::log(sum);
    loss += (log_sum - of_row[target]) / rows;
    for (std::size_t v = 0; v < logits.columns; ++v)
      by_logit.push_back(std::exp(of_row[v] - log_sum) - (v == target ? 1 : 0));
  }
  tape.record([&logits, rows, by_logit] {
    for (std::size_t i = 0; i < by_logit.size(); ++i) logits.gradient[i] += by_logit[i] / rows;
  });
  return loss;
}

/// What the parts of one forward pass share.
struct Pass {
  Tape& tape;
  Parameters& parameters;
  std::int64_t step, token_sum;

  Variable& parameter(const std::string& name) const {
    const auto found = parameters.find(name);
    demand(found != parameters.end(), name, "is no parameter of the model");
    return found->second;
  }

  bool runs(When when) const {
    const bool even = token_sum % 2 == 0;
    return when == When::always || (when == When::odd_steps && step % 2 == 1) ||
           (when == When::even_batch && even) || (when == When::odd_batch && !even);
  }

  Variable& output(const Part& part, Variable& x) const {
    const std::string weight = part.name + ".weight", bias = part.name + ".bias";
    switch (part.kind) {
      case Part::Kind::linear:
        return add(tape, multiply(tape, x, parameter(weight)), parameter(bias));
      case Part::Kind::norm:
        return add(tape, scale(tape, normalize(tape, x), parameter(weight)), parameter(bias));
      case Part::Kind::gelu:
        return gelu(tape, x);
      case Part::Kind::scale:
        return scale(tape, x, parameter(part.lender + ".weight"));
      case Part::Kind::group:
        if (!runs(part.when)) return x;
        Variable& y = output(part.parts, x);
        return part.residual ? add(tape, x, y) : y;
    }
    throw std::logic_error("no such Part::Kind");
  }

  Variable& output(const std::vector<Part>& parts, Variable& x) const {
    Variable* latest = &x;
    for (const Part& part : parts) latest = &output(part, *latest);
    return *latest;
  }
};

void describe(Parameters& parameters, const std::string& name, std::int64_t rows,
              std::int64_t columns) {
  const Variable made(name, static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
  const Variable& known = parameters.try_emplace(name, made).first->second;
  demand(known.rows == made.rows && known.columns == made.columns, name, "is given two shapes");
}

/// Also those of groups that never run.
void describe(Parameters& parameters, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const bool linear = part.kind == Part::Kind::linear;
    if (linear || part.kind == Part::Kind::norm) {
      describe(parameters, part.name + ".weight", linear ? part.out : 1,
               linear ? part.in : part.out);
      describe(parameters, part.name + ".bias", 1, part.out);
    }
    describe(parameters, part.parts);
  }
}

Parameters parameters_of(const DescribedModel& model, const NamedWeights& weights) {
  Parameters parameters;
  describe(parameters, "embedding.weight", model.vocabulary, model.width);
  describe(parameters, model.parts);
  for (auto& [name, parameter] : parameters) {
    const auto given = weights.find(name);
    demand(given != weights.end(), name, "has no initial value");
    demand(given->second.size() == parameter.value.size(), name,
           "has " + std::to_string(parameter.value.size()) + " elements, not " +
               std::to_string(given->second.size()));
    parameter.value = given->second;
  }
  for (const auto& [name, values] : weights)
    demand(parameters.contains(name), name, "has a value, but the model has no such parameter");
  for (const std::string& name : model.frozen)
    demand(parameters.contains(name), name, "is frozen, but the model has no such parameter");
  return parameters;
}

PlainGradients mean_over_micro_batches(const DescribedModel& model, const NamedWeights& weights,
                                       const PlainTraining& training, std::int64_t step) {
  const auto tokens_each =
      static_cast<std::size_t>(training.micro_batch * training.sequence_length);
  const std::int64_t micro_batches = training.micro_steps * training.ranks;
  PlainGradients mean;
  for (std::int64_t i = 0; i < micro_batches; ++i) {  // i = g * ranks + r
    std::vector<std::int32_t> tokens(tokens_each), targets(tokens_each);
    training.batches(step, i * training.micro_batch, training.micro_batch, training.sequence_length,
                     tokens.data(), targets.data());
    const PlainGradients one = differentiate_plainly(model, weights, step, tokens, targets);
    mean.loss += one.loss / static_cast<double>(micro_batches);
    for (const auto& [name, gradient] : one.gradients) {
      std::vector<double>& sum = mean.gradients[name];
      sum.resize(gradient.size());
      for (std::size_t e = 0; e < gradient.size(); ++e)
        sum[e] += gradient[e] / static_cast<double>(micro_batches);
    }
  }
  return mean;
}

double norm_of(const NamedWeights& gradients) {
  double squares = 0;
  for (const auto& [name, gradient] : gradients)
    squares += std::inner_product(gradient.begin(), gradient.end(), gradient.begin(), 0.0);
  return std::sqrt(squares);
}

}  // namespace

PlainGradients differentiate_plainly(const DescribedModel& model, const NamedWeights& weights,
                                     std::int64_t step, const std::vector<std::int32_t>& tokens,
                                     const std::vector<std::int32_t>& targets) {
  demand(tokens.size() == targets.size(), "the micro-batch", "every token has a target");
  Parameters parameters = parameters_of(model, weights);
  Tape tape;
  const Pass pass{tape, parameters, step,
                  std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0})};
  Variable& table = parameters.at("embedding.weight");
  Variable& last = pass.output(model.parts, look_up(tape, table, tokens));
  Variable& logits = model.tied ? multiply(tape, last, table) : last;
  PlainGradients result{cross_entropy(tape, logits, targets), {}};
  tape.run_backward();
  for (auto& [name, parameter] : parameters)
    if (!model.frozen.contains(name)) result.gradients[name] = parameter.gradient;
  return result;
}

PlainResult train_plainly(const DescribedModel& model, const NamedWeights& initial,
                          const PlainTraining& training) {
  PlainResult result{{}, initial, {}};
  for (std::int64_t step = 1; step <= training.steps; ++step) {
    const PlainGradients mean = mean_over_micro_batches(model, result.weights, training, step);
    const double norm = norm_of(mean.gradients);
    const double factor =
        training.clipping == 0 ? 1 : 1 / std::max((norm + 1e-6) / training.clipping, 1.0);
    for (const auto& [name, gradient] : mean.gradients) {
      std::vector<double>& weight = result.weights.at(name);
      for (std::size_t e = 0; e < weight.size(); ++e) {
        weight[e] -=
            training.learning_rate * (factor * gradient[e] + training.weight_decay * weight[e]);
      }
    }
    result.steps.push_back({mean.loss, norm});
    result.gradients = mean.gradients;
  }
  return result;
}

}  // namespace zerolab::test
