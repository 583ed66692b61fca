// longshort-gpu-counts: prints the lines of tests/models/gpu/counts.txt that it can count. tests/gpu/run compares them.

#include <iostream>
#include <string>

#include "tests/models/gpu/counts/counts.h"

int main() {
  using longshort::models::LinesOfBatches, longshort::models::LinesOfLaunches, longshort::models::LinesOfSteps;
  for (const auto lines : {LinesOfSteps, LinesOfBatches, LinesOfLaunches}) {
    for (const std::string& line : lines()) std::cout << line << std::endl;
  }
}
