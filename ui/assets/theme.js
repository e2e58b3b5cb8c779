// The theme that was chosen in this browser, before anything is drawn.
{
  const chosen = localStorage.getItem("mcsh-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
