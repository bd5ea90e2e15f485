#include "tests/support/naive_bigram.hpp"

#include <cmath>

#include "tests/support/layers.hpp"

namespace zerolab::test {

Chain bigram(Index vocabulary, Index width) {
  return [=](ParameterSet& parameters) {
    return Links{embedding(parameters, vocabulary, width),
                 linear(parameters, "linear", width, vocabulary)};
  };
}

NaiveBigram::NaiveBigram(const Weights& weights, Index vocabulary, Index width)
    : vocabulary_(static_cast<std::size_t>(vocabulary)), width_(static_cast<std::size_t>(width)) {
  for (const std::vector<float>& values : weights)
    values_.emplace_back(values.begin(), values.end());
}

double NaiveBigram::step(const std::vector<std::int32_t>& tokens,
                         const std::vector<std::int32_t>& targets, double learning_rate) {
  const std::vector<double>& embedding = values_[0];
  const std::vector<double>& weight = values_[1];
  const std::vector<double>& bias = values_[2];
  std::vector<std::vector<double>> gradient;
  for (const auto& values : values_) gradient.emplace_back(values.size(), 0.0);
  double loss = 0;
  for (std::size_t sample = 0; sample < tokens.size(); ++sample) {
    const std::size_t row = static_cast<std::size_t>(tokens[sample]) * width_;
    const auto target = static_cast<std::size_t>(targets[sample]);
    std::vector<double> probability(vocabulary_);
    double sum = 0;
    for (std::size_t v = 0; v < vocabulary_; ++v) {
      double logit = bias[v];
      for (std::size_t i = 0; i < width_; ++i) logit += weight[v * width_ + i] * embedding[row + i];
      sum += probability[v] = std::exp(logit);
    }
    for (double& p : probability) p /= sum;
    loss -= std::log(probability[target]);
    for (std::size_t v = 0; v < vocabulary_; ++v) {
      const double of_logit =
          (probability[v] - (v == target ? 1 : 0)) / static_cast<double>(tokens.size());
      gradient[2][v] += of_logit;
      for (std::size_t i = 0; i < width_; ++i) {
        gradient[1][v * width_ + i] += of_logit * embedding[row + i];
        gradient[0][row + i] += of_logit * weight[v * width_ + i];
      }
    }
  }
  double squares = 0;
  for (std::size_t p = 0; p < values_.size(); ++p) {
    for (std::size_t i = 0; i < values_[p].size(); ++i) {
      squares += gradient[p][i] * gradient[p][i];
      values_[p][i] -= learning_rate * gradient[p][i];
    }
  }
  gradient_norm_ = std::sqrt(squares);
  return loss / static_cast<double>(tokens.size());
}

Weights NaiveBigram::weights() const {
  Weights result;
  for (const auto& values : values_) {
    result.emplace_back();
    for (const double value : values) result.back().push_back(static_cast<float>(value));
  }
  return result;
}

}  // namespace zerolab::test
