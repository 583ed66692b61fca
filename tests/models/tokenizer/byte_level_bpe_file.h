// A tokenizer.json for tests.
#pragma once

#include <string>
#include <utility>

#include "nlohmann/json.hpp"

namespace longshort::models {

// Symbols of all bytes from id 5 on in the order of GPT-2's characters, and a few merges.
inline nlohmann::json ByteLevelBpeFile() {
  nlohmann::json file = nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
    "added_tokens": [
      {"id": 4, "content": "<mask>", "single_word": false, "lstrip": true, "rstrip": false, "normalized": false,
       "special": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true,
                       "add_prefix_space": false},
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
              "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
              "vocab": {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4}, "merges": []}})");
  nlohmann::json& vocabulary = file["model"]["vocab"];
  const auto add = [&](char32_t character) {
    std::string symbol;
    if (character >= 0x80) symbol.push_back(static_cast<char>(0xC0 | character >> 6));
    symbol.push_back(static_cast<char>(character >= 0x80 ? 0x80 | (character & 0x3F) : character));
    vocabulary[symbol] = vocabulary.size();
  };
  for (char32_t character = '!'; character < 0x144; ++character) {
    if ((character > '~' && character < 0xA1) || character == 0xAD) continue;
    add(character);
  }
  for (const auto& [left, right] : {std::pair("t", "h"), std::pair("th", "e"), std::pair("\xC4\xA0", "the")}) {
    vocabulary[std::string(left) + right] = vocabulary.size();
    file["model"]["merges"].push_back({left, right});
  }
  return file;
}

}  // namespace longshort::models
