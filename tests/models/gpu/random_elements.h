// Random elements for kernels, and their values.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "models/device/device.h"
#include "models/device/pages.h"

namespace longshort::models::cuda {

template <typename Element>
constexpr ElementType kTypeOf = std::is_same_v<Element, float> ? ElementType::kFloat : ElementType::kBFloat16;

template <typename Element>
Element ElementOf(float value) {
  Element element;
  Convert(value, element);
  return element;
}

// From a normal distribution with this deviation.
template <typename Element>
std::vector<Element> RandomElements(std::mt19937_64& random, int64_t count, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  std::vector<Element> elements(count);
  for (Element& element : elements) Convert(normal(random), element);
  return elements;
}

template <typename Element>
std::vector<float> Floats(const std::vector<Element>& elements) {
  std::vector<float> floats;
  for (const Element& element : elements) floats.push_back(ToFloat(element));
  return floats;
}

}  // namespace longshort::models::cuda
