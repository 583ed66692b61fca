// Texts and a picture to try the models with.

import { make } from "./dom.js";

export const SCORED = `The '''Moon''' is the only natural [[satellite]] of the Earth. It goes round the Earth in about a month, and its gravity raises the tides of the oceans twice a day.

The same words in another order:

Day a satellite natural only the raises Earth twice. In oceans of the tides a month round goes its, gravity the and about Moon it Earth is the of the.

Random digits, which nobody can guess:

8f1c07e92b64da35 71b0e4c29f8d6a53 0d9e72fb184c6a5e
`;

export const PROMPTS = [
  "A lighthouse is ",
  "The history of ",
  "'''Rome''' is the capital of ",
  "In 1969, the first men ",
  "Once upon a time there was ",
];

const LISTOPS_2020 = ["( ( ( [MAX 2 ) 9 ) ] )", "( ( ( [MIN 4 ) 7 ) ] )"];
const LISTOPS_2021 = ["[MAX 2 9 [MIN 4 7 ] 0 ]", "[SM 5 6 [MED 1 2 3 ] ]"];
const TEXTS = [
  "The train to the coast leaves at nine, and we have packed a lunch for everybody.",
  "Das Wetter ist heute schön, also gehen wir am Nachmittag an den See.",
  "Bonjour à tous les amis ! Le petit village attend le retour du printemps.",
  "שלום עולם, הספר הזה מספר על הים ועל העיר הישנה.",
  "Сегодня утром мы долго гуляли по берегу реки.",
];
const PAIRS = [
  ["A man plays the guitar.", "Somebody makes music."],
  ["The shop is open on Sunday.", "On Sunday nobody can buy anything there."],
];

export const textsFor = (tokenizer) => ({ listops_2020: LISTOPS_2020, listops_2021: LISTOPS_2021 })[tokenizer] ?? TEXTS;
export const pairsFor = (tokenizer) =>
  (["listops_2020", "listops_2021"].includes(tokenizer) ? [textsFor(tokenizer)] : PAIRS);

// The example after the one that is shown, or the first.
export const nextExample = (examples, shown) => examples[(examples.indexOf(shown) + 1) % examples.length];

// Draws a daisy, so that the page needs no file of a picture. Resolves to a PNG.
export function drawDaisy() {
  const side = 320;
  const canvas = make("canvas", { width: side, height: side });
  const draw = canvas.getContext("2d");
  const meadow = draw.createLinearGradient(0, 0, 0, side);
  meadow.addColorStop(0, "#5d8a3c");
  meadow.addColorStop(1, "#2f5a24");
  draw.fillStyle = meadow;
  draw.fillRect(0, 0, side, side);
  draw.translate(side / 2, side / 2);
  const petals = 21;
  for (let petal = 0; petal < petals; ++petal) {
    draw.rotate((2 * Math.PI) / petals);
    draw.beginPath();
    draw.ellipse(0, -88, 15, 52, 0, 0, 2 * Math.PI);
    draw.fillStyle = petal % 2 === 0 ? "#ffffff" : "#ece9e2";
    draw.fill();
  }
  const heart = draw.createRadialGradient(-10, -12, 4, 0, 0, 44);
  heart.addColorStop(0, "#ffd93b");
  heart.addColorStop(1, "#d99a0b");
  draw.beginPath();
  draw.arc(0, 0, 42, 0, 2 * Math.PI);
  draw.fillStyle = heart;
  draw.fill();
  return new Promise((resolve) => {
    canvas.toBlob((blob) => resolve(new File([blob], "daisy.png", { type: "image/png" })), "image/png");
  });
}
