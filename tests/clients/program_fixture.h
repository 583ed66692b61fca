// Runs command lines of the program against a FakeServer.
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cpp/program.h"
#include "gtest/gtest.h"
#include "tests/clients/fake_server.h"

namespace longshort {

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    v1::Model model;
    model.set_name("characters");
    model.set_version(3);
    model.set_architecture("language_model");
    model.set_tokenizer("fairseq_bytes");
    model.set_parameters(2650000);
    model.mutable_limits()->set_prompt_tokens(100);
    server_.models = {model};
  }

  // Runs `longshort --server=<the fake one> arguments...`.
  ExitCode Run(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::vector<std::string> all = {"--server=" + server_.address()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return RunAlone(all, input);
  }

  // Runs `longshort arguments...`.
  ExitCode RunAlone(const std::vector<std::string>& arguments, const std::string& input = "") {
    std::istringstream in(input);
    std::ostringstream out;
    std::ostringstream error;
    Terminal terminal{in, out, error};
    const ExitCode code = RunProgram(arguments, terminal,
                                     [](const Client::Options& options) { return std::make_shared<Client>(options); });
    output_ = out.str();
    error_ = error.str();
    return code;
  }

  FakeServer server_;
  // Of the last run.
  std::string output_;
  std::string error_;
};

}  // namespace longshort
